#include <cmath>

#include "core/base/error.h"
#include "core/stage/layers.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

class Convolution final : public Layer {
 public:
  Convolution(std::int64_t in, std::int64_t out, ConvolutionOptions options)
      : in_(in), out_(out), options_(options) {
    PIPEWRIGHT_CHECK(in > 0 && out > 0 && options.kernel > 0 && options.stride > 0,
                     "convolution of ", in, " to ", out, " channels");
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    const std::int64_t k = options_.kernel;
    const Initializer uniform{Kind::Uniform, 1 / std::sqrt(static_cast<double>(in_ * k * k))};
    const Initializer kaiming{Kind::Normal, std::sqrt(2.0 / static_cast<double>(out_ * k * k))};
    const bool zero_bias = options_.kaiming_fan_out && !options_.uniform_bias;
    std::vector<ParameterSpec> specs{
        {"weight", {out_, in_, k, k}, options_.kaiming_fan_out ? kaiming : uniform}};
    if (options_.bias)
      specs.push_back({"bias", {out_}, zero_bias ? Initializer{Kind::Constant, 0} : uniform});
    return specs;
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    if (input.is_meta()) return at::empty(output_shape(input), input.options());
    return at::conv2d(input, parameters[0], options_.bias ? parameters[1] : at::Tensor(),
                      {options_.stride, options_.stride}, {options_.padding, options_.padding});
  }

 private:
  /// LibTorch has no convolution on the meta device outside Python.
  std::vector<std::int64_t> output_shape(const at::Tensor& input) const {
    const auto extent = [&](std::int64_t size) {
      return (size + 2 * options_.padding - options_.kernel) / options_.stride + 1;
    };
    return {input.size(0), out_, extent(input.size(2)), extent(input.size(3))};
  }

  std::int64_t in_, out_;
  ConvolutionOptions options_;
};

}  // namespace

LayerPtr convolution(std::int64_t in, std::int64_t out, ConvolutionOptions options) {
  return std::make_shared<Convolution>(in, out, options);
}

}  // namespace pipewright
