// SPDX-License-Identifier: Apache-2.0
/// 16-bit floats, rounded to nearest even: two bytes per value. fp16 has 5 exponent bits, so |x| ≥
/// 65520 would become infinite (by default it saturates) and small gradients become 0; bf16 has
/// float32's range and 8 bits of precision.
#include "core/codecs/codec.h"
#include "core/codecs/loops/small_float_loops.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr double kLargestHalf = 65504;

class HalfCoder final : public Coder {
 public:
  HalfCoder(at::ScalarType type, bool saturate) : type_(type), saturate_(saturate) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    const at::Tensor payload = out.payload(2 * x.numel());
    if (!x.is_cpu()) {
      const at::Tensor flat = x.view({-1});
      payload.view(type_).copy_(
          saturate_ ? at::where(flat.isinf(), flat, flat.clamp(-kLargestHalf, kLargestHalf))
                    : flat);
    } else if (!convert({x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel())},
                        static_cast<std::uint16_t*>(payload.mutable_data_ptr()))) {
      out.leave_raw();
    }
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    check_bytes(payload, 2 * c10::multiply_integers(sizes));
    return payload.view(type_).to(at::kFloat).view(sizes);
  }

 private:
  /// Converts and returns whether all values were finite; the values are read only once.
  bool convert(std::span<const float> x, std::uint16_t* halves) const {
    if (type_ == at::kBFloat16) return to_bfloat16(x, halves);
    return saturate_ ? to_saturated_halves(x, halves) : to_halves(x, halves);
  }

  at::ScalarType type_;
  bool saturate_;
};

class Half : public Codec {
 public:
  Half(at::ScalarType type, bool saturate) : type_(type), saturate_(saturate) {}
  std::unique_ptr<Coder> coder() const override {
    return std::make_unique<HalfCoder>(type_, saturate_);
  }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return 2 * c10::multiply_integers(sizes);
  }

 private:
  at::ScalarType type_;
  bool saturate_;
};

class Fp16 final : public Half {
 public:
  explicit Fp16(Options& options)
      : Half(at::kHalf, options.flag("saturate", true,
                                     "Whether values that are too large become ±65504; false: "
                                     "infinite, as in a cast.")) {}
};

class Bf16 final : public Half {
 public:
  explicit Bf16(Options&) : Half(at::kBFloat16, false) {}
};

PIPEWRIGHT_CODEC(fp16, Fp16, "IEEE half precision: 16 bits per value.");
PIPEWRIGHT_CODEC(bf16, Bf16, "bfloat16: 16 bits per value, with the range of float32.");

}  // namespace
}  // namespace pipewright
