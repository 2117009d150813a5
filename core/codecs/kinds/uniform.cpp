// SPDX-License-Identifier: Apache-2.0
/// Uniform quantization to b bits per value. By default the step is s = (max − min)/(2^b − 1), the
/// code round_half_even((x − min)/s), and x' = min + code·s. Symmetric: s = max|x| / (2^(b−1) − 1),
/// and 0 stays 0. The error is at most s/2, with stochastic rounding less than s.
#include "core/codecs/codec.h"
#include "core/codecs/kinds/uniform_quantizer.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class UniformCoder final : public Coder {
 public:
  explicit UniformCoder(const UniformQuantizer& quantizer) : quantizer_(quantizer) {}

  void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) override {
    if (!quantizer_.encode(x, call, out.payload(quantizer_.bytes(x.sizes())))) out.leave_raw();
  }
  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    return quantizer_.decode(payload, sizes);
  }

 private:
  const UniformQuantizer& quantizer_;
};

class Uniform final : public Codec {
 public:
  explicit Uniform(Options& options) : quantizer_(options, {}) {}
  std::unique_ptr<Coder> coder() const override {
    return std::make_unique<UniformCoder>(quantizer_);
  }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return quantizer_.bytes(sizes);
  }

 private:
  UniformQuantizer quantizer_;
};

PIPEWRIGHT_CODEC(uniform, Uniform, "Uniform quantization to 1 to 16 bits per value.");

}  // namespace
}  // namespace pipewright
