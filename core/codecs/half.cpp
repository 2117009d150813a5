/// Halves of float32: round to nearest even, two bytes a value. fp16 has 5 bits of exponent, so
/// |x| ≥ 65520 would become infinite and small gradients vanish; bf16 has float32's range and 8
/// bits of precision.
#include "core/base/error.h"
#include "core/codecs/codec.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

constexpr double kLargestHalf = 65504;

class HalfCoder final : public Coder {
 public:
  HalfCoder(at::ScalarType type, bool saturate) : type_(type), saturate_(saturate) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    if (x.is_cpu() && !x.isfinite().all().item<bool>()) return;
    const at::Tensor halves = out.payload(2 * x.numel()).view(type_);
    if (saturate_)
      halves.copy_(x.reshape({-1}).clamp(-kLargestHalf, kLargestHalf));
    else
      halves.copy_(x.reshape({-1}));
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    if (payload.numel() != 2 * c10::multiply_integers(sizes))
      throw Error(ErrorKind::Data,
                  concat("a compressed message has ", payload.numel(), " bytes of halves for ",
                         c10::multiply_integers(sizes), " values"));
    return payload.view(type_).to(at::kFloat).view(sizes);
  }

 private:
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
      : Half(at::kHalf,
             options.flag("saturate", true,
                          "What is too large becomes ±65504; false: infinite, as a cast does.")) {}
};

class Bf16 final : public Half {
 public:
  explicit Bf16(Options&) : Half(at::kBFloat16, false) {}
};

PIPEWRIGHT_CODEC(fp16, Fp16, "IEEE halves: 16 bits a value.");
PIPEWRIGHT_CODEC(bf16, Bf16, "bfloat16: 16 bits a value, float32's range.");

}  // namespace
}  // namespace pipewright
