// SPDX-License-Identifier: Apache-2.0
/// Microscaling (OCP MX specification, 2023; Rouhani et al., 2023): 32 consecutive values share a
/// scale, the power of two 2^(floor(log2 max|x|) − largest exponent of an element), sent as one
/// byte. Their elements are floats of 8, 6 or 4 bits, which saturate.
///
/// Payload: the scales' bytes, then the packed elements.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/codecs/codec.h"
#include "core/codecs/loops/bit_tensors.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/small_float_loops.h"
#include "core/codecs/loops/small_float_tensors.h"
#include "core/codecs/loops/uniform_loops.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int32_t kNotFinite = 255;

constexpr std::int64_t blocks_of(std::int64_t n) {
  return (n + kBlock - 1) / kBlock;
}

/// The byte of a block's scale: the biased exponent of that power of two in float32.
std::int32_t power_of(float largest, SmallFloat element) {
  return std::max((std::bit_cast<std::int32_t>(largest) >> 23) - element.largest_exponent(), 0);
}

/// The scale that a byte stands for, 2^(power − 127); for 0 that is the subnormal 2^−127.
float scale_of(std::uint8_t power) {
  return std::bit_cast<float>(power == 0 ? 1 << 22 : std::int32_t{power} << 23);
}

at::Tensor scales_of(const at::Tensor& powers) {
  const at::Tensor bits = powers.to(at::kInt).bitwise_left_shift_(23);
  return at::where(bits == 0, 1 << 22, bits).view(at::kFloat);
}

class MxCoder final : public Coder {
 public:
  explicit MxCoder(SmallFloat element) : element_(element) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    const at::Tensor payload = out.payload(bytes(x.numel()));
    if (!x.is_cpu())
      encode_anywhere(x, payload);
    else if (!encode_blocks({x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel())},
                            bytes_from(payload, 0)))
      out.leave_raw();
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const std::int64_t n = c10::multiply_integers(sizes);
    check_bytes(payload, bytes(n));
    if (!payload.is_cpu()) return decode_anywhere(payload, n).view(sizes);
    const at::Tensor x = at::empty(sizes, at::TensorOptions(at::kFloat));
    decode_blocks(bytes_from(payload, 0),
                  {x.mutable_data_ptr<float>(), static_cast<std::size_t>(n)});
    return x;
  }

  std::int64_t bytes(std::int64_t n) const {
    return blocks_of(n) + packed_bytes(n, element_.bits());
  }

 private:
  bool encode_blocks(std::span<const float> x, std::span<std::byte> payload) const {
    std::size_t block = 0;
    BitWriter writer(
        payload.subspan(static_cast<std::size_t>(blocks_of(static_cast<std::int64_t>(x.size())))),
        element_.bits());
    for (; !x.empty(); ++block) {
      const auto values = x.first(std::min<std::size_t>(kBlock, x.size()));
      x = x.subspan(values.size());
      ValueRange range;
      range.include(values);
      if (!range.finite()) return false;
      const std::int32_t power = power_of(std::max(-range.least(), range.most()), element_);
      payload[block] = static_cast<std::byte>(power);
      const float factor = std::bit_cast<float>((254 - power) << 23);
      writer.write(values.size(), [&](std::size_t at, std::span<std::uint16_t> codes) {
        small_codes(values.subspan(at, codes.size()), factor, element_, codes);
      });
    }
    writer.flush();
    return true;
  }

  void decode_blocks(std::span<const std::byte> payload, std::span<float> x) const {
    std::array<float, 256> values{};
    for (std::uint32_t code = 0; code < 1U << element_.bits(); ++code)
      values[code] = small_value(code, element_);
    const auto count = static_cast<std::size_t>(blocks_of(static_cast<std::int64_t>(x.size())));
    BitReader reader(payload.subspan(count), element_.bits());
    for (std::size_t block = 0; block < count; ++block) {
      const float scale = scale_of(static_cast<std::uint8_t>(payload[block]));
      const auto into =
          x.subspan(block * kBlock, std::min<std::size_t>(kBlock, x.size() - block * kBlock));
      reader.read(into.size(), [&](std::size_t first, std::span<const std::uint16_t> codes) {
        for (std::size_t i = 0; i < codes.size(); ++i) into[first + i] = values[codes[i]] * scale;
      });
    }
  }

  void encode_anywhere(const at::Tensor& x, const at::Tensor& payload) const {
    const std::int64_t n = x.numel(), count = blocks_of(n);
    if (n == 0) return;
    const at::Tensor blocks =
        at::constant_pad_nd(x.view({-1}), {0, count * kBlock - n}).view({count, kBlock});
    const at::Tensor exponents =
        blocks.abs().amax(1).view(at::kInt).bitwise_right_shift_(23).bitwise_and_(255);
    const at::Tensor powers = at::where(exponents == kNotFinite, kNotFinite,
                                        (exponents - element_.largest_exponent()).clamp_min_(0));
    payload.narrow(0, 0, count).copy_(powers);
    const at::Tensor factors =
        (254 - powers).clamp_min_(0).bitwise_left_shift_(23).view(at::kFloat);
    const at::Tensor codes = small_codes(blocks * factors.view({-1, 1}), element_);
    payload.narrow(0, count, packed_bytes(n, element_.bits()))
        .copy_(packed(codes.view({-1}).narrow(0, 0, n), element_.bits()));
  }

  at::Tensor decode_anywhere(const at::Tensor& payload, std::int64_t n) const {
    const std::int64_t count = blocks_of(n);
    if (n == 0) return at::empty({0}, payload.options().dtype(at::kFloat));
    const at::Tensor codes =
        unpacked(payload.narrow(0, count, packed_bytes(n, element_.bits())), n, element_.bits());
    const at::Tensor scales = scales_of(payload.narrow(0, 0, count));
    return small_values(codes, element_) *
           scales.view({-1, 1}).expand({-1, kBlock}).reshape({-1}).narrow(0, 0, n);
  }

  SmallFloat element_;
};

class Mx final : public Codec {
 public:
  explicit Mx(Options& options)
      : element_(element(options.choice(
            "element", {"fp8_e4m3", "fp8_e5m2", "fp6_e2m3", "fp6_e3m2", "fp4_e2m1"}, "fp8_e4m3",
            "Format of a value: its bits, and how many of them are exponent (e) and mantissa "
            "(m)."))) {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<MxCoder>(element_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return MxCoder(element_).bytes(c10::multiply_integers(sizes));
  }

 private:
  static SmallFloat element(const std::string& word) {
    if (word == "fp8_e5m2") return kE5M2;
    if (word == "fp6_e2m3") return kE2M3;
    if (word == "fp6_e3m2") return kE3M2;
    return word == "fp4_e2m1" ? kE2M1 : kE4M3;
  }

  SmallFloat element_;
};

PIPEWRIGHT_CODEC(mx, Mx, "Microscaling: blocks of 32 share a power of two, 4 to 8 bits per value.");

}  // namespace
}  // namespace pipewright
