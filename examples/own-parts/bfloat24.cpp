// SPDX-License-Identifier: Apache-2.0
// A codec: the upper three of the four bytes of every value. The error is below 2⁻¹⁵ of the value,
// and what is not finite remains so. The processor has the lowest byte first.
#include <ATen/ATen.h>

#include "core/base/error.h"
#include "core/codecs/codec.h"

namespace pipewright {
namespace {

constexpr std::int64_t kBytes = 3;

at::Tensor upper_bytes(const at::Tensor& values) {
  return values.view({-1}).view(at::kByte).view({-1, 4}).slice(1, 1);
}

class Bfloat24Coder final : public Coder {
 public:
  void encode(const at::Tensor& x, const CodecCall& /*call*/, FrameBuilder& out) override {
    out.payload(kBytes * x.numel()).view({-1, kBytes}).copy_(upper_bytes(x));
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes,
                    const CodecCall& /*call*/) override {
    const at::Tensor x = at::zeros(sizes, payload.options().dtype(at::kFloat));
    if (payload.numel() != kBytes * x.numel())
      throw Error(ErrorKind::Data, concat("a compressed message has ", payload.numel(),
                                          " bytes; expected ", kBytes * x.numel()));
    upper_bytes(x).copy_(payload.view({-1, kBytes}));
    return x;
  }
};

class Bfloat24 final : public Codec {
 public:
  explicit Bfloat24(Options& /*options*/) {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<Bfloat24Coder>(); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return kBytes * c10::multiply_integers(sizes);
  }
};

PIPEWRIGHT_CODEC(bfloat24, Bfloat24, "The upper three bytes of every value.")

}  // namespace
}  // namespace pipewright
