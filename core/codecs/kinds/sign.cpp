// SPDX-License-Identifier: Apache-2.0
/// One bit per value: its sign, multiplied by the mean absolute value of the tensor (Seide et al.,
/// 2014; Bernstein et al., 2018). The error is large; with error feedback it is added to later
/// tensors.
///
/// Payload: the mean, float32; then one bit per value, 1 for values below 0.
#include <cmath>

#include "core/codecs/codec.h"
#include "core/codecs/error_feedback.h"
#include "core/codecs/loops/bit_tensors.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/sign_loops.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t bytes_of(std::int64_t n) {
  return 4 + packed_bytes(n, 1);
}

/// Encodes v, on a CPU. Returns false if v has non-finite values.
bool take_signs(const at::Tensor& v, const at::Tensor& payload) {
  const std::span<const float> x = span_of(v);
  const double sum = sum_of_magnitudes(x);
  if (!std::isfinite(sum)) return false;
  span_of(floats_of(payload, 0, 1))[0] =
      x.empty() ? 0 : static_cast<float>(sum / static_cast<double>(x.size()));
  BitWriter writer(bytes_from(payload, 4), 1);
  writer.write(x.size(), [&](std::size_t first, std::span<std::uint16_t> codes) {
    sign_codes(x.subspan(first, codes.size()), codes);
  });
  writer.flush();
  return true;
}

void take_signs_anywhere(const at::Tensor& v, const at::Tensor& payload) {
  const std::int64_t n = v.numel();
  const at::Tensor mean = floats_of(payload, 0, 1);
  if (n == 0) {
    mean.zero_();
    return;
  }
  mean.copy_(v.abs().mean(at::kDouble));
  payload.narrow(0, 4, packed_bytes(n, 1)).copy_(packed((v.view({-1}) < 0).to(at::kInt), 1));
}

at::Tensor values_of(const at::Tensor& payload, at::IntArrayRef sizes) {
  const std::int64_t n = c10::multiply_integers(sizes);
  const at::Tensor mean = floats_of(payload, 0, 1);
  if (!payload.is_cpu()) {
    if (n == 0) return at::empty(sizes, mean.options());
    const at::Tensor codes = unpacked(payload.narrow(0, 4, packed_bytes(n, 1)), n, 1);
    return (1 - 2 * codes).to(at::kFloat).mul_(mean).view(sizes);
  }
  const at::Tensor x = at::empty(sizes, at::TensorOptions(at::kFloat));
  BitReader reader(bytes_from(payload, 4), 1);
  reader.read(static_cast<std::size_t>(n), [&](std::size_t first,
                                               std::span<const std::uint16_t> codes) {
    sign_values(codes, mean.const_data_ptr<float>()[0], span_of(x).subspan(first, codes.size()));
  });
  return x;
}

class SignCoder final : public Coder {
 public:
  explicit SignCoder(Feedback feedback) : errors_(feedback) {}

  void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) override {
    const at::Tensor v = errors_.corrected(x, call), payload = out.payload(bytes_of(x.numel()));
    if (!x.is_cpu())
      take_signs_anywhere(v, payload);
    else if (!take_signs(v, payload))
      return out.leave_raw();
    if (errors_.active(x, call)) errors_.keep(v - values_of(payload, x.sizes()), call);
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    check_bytes(payload, bytes_of(c10::multiply_integers(sizes)));
    return values_of(payload, sizes);
  }

  NamedTensors state() const override { return errors_.state(); }
  void restore(const NamedTensors& state) override { errors_.restore(state); }

 private:
  ErrorFeedback errors_;
};

class Sign final : public Codec {
 public:
  explicit Sign(Options& options) : feedback_(feedback_of(options)) {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<SignCoder>(feedback_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return bytes_of(c10::multiply_integers(sizes));
  }
  bool by_sample() const override { return feedback_ == Feedback::Sample; }

 private:
  Feedback feedback_;
};

PIPEWRIGHT_CODEC(sign, Sign, "One bit per value: its sign, times the mean absolute value.");

}  // namespace
}  // namespace pipewright
