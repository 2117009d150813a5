// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/nn/layers.h"
#include "core/nn/meta/on_meta.h"
#include "core/nn/meta/operation_count.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Convolution final : public Layer {
 public:
  Convolution(std::int64_t in, std::int64_t out, const ConvolutionOptions& options)
      : in_(in),
        out_(out),
        kernel_{options.kernel, options.kernel_width.value_or(options.kernel)},
        stride_{options.stride, options.stride_width.value_or(options.stride)},
        padding_{options.padding, options.padding_width.value_or(options.padding)},
        options_(options) {
    PIPEWRIGHT_CHECK(
        in > 0 && out > 0 && kernel_[0] > 0 && kernel_[1] > 0 && stride_[0] > 0 && stride_[1] > 0 &&
            options.groups > 0 && in % options.groups == 0 && out % options.groups == 0,
        "convolution of ", in, " to ", out, " channels in ", options.groups, " groups");
  }

  std::vector<ParameterSpec> parameters() const override {
    using Kind = Initializer::Kind;
    const std::int64_t area = kernel_[0] * kernel_[1], in = in_ / options_.groups;
    const Initializer uniform{Kind::Uniform, 1 / std::sqrt(static_cast<double>(in * area))};
    const Initializer kaiming{Kind::Normal, std::sqrt(2.0 / static_cast<double>(out_ * area))};
    const bool zero_bias = options_.kaiming_fan_out && !options_.uniform_bias;
    std::vector<ParameterSpec> specs{
        {"weight",
         {out_, in, kernel_[0], kernel_[1]},
         options_.weight.value_or(options_.kaiming_fan_out ? kaiming : uniform)}};
    if (options_.bias)
      specs.push_back({"bias", {out_}, zero_bias ? Initializer{Kind::Constant, 0} : uniform});
    return specs;
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    const at::Tensor bias = options_.bias ? parameters[1] : at::Tensor();
    if (input.is_meta())  // a GPU adds the bias behind the convolution
      return made_on_meta({input, parameters[0], bias},
                          counted(at::empty(output_shape(input), input.options(),
                                            parameters[0].suggest_memory_format())),
                          {input}, options_.bias ? 2 : 1);
    return at::conv2d(input, parameters[0], bias, stride_, padding_, at::IntArrayRef{1, 1},
                      options_.groups);
  }

 private:
  using Pair = std::array<std::int64_t, 2>;  // along height, width

  at::Tensor counted(at::Tensor output) const {
    const std::int64_t area = kernel_[0] * kernel_[1];
    count_multiply_adds(static_cast<double>(output.numel()) *
                        static_cast<double>(in_ / options_.groups * area));
    return output;
  }

  /// Needed because LibTorch has no convolution on the meta device outside Python.
  std::vector<std::int64_t> output_shape(const at::Tensor& input) const {
    const auto extent = [&](std::size_t side) {
      return (input.size(2 + static_cast<std::int64_t>(side)) + 2 * padding_[side] -
              kernel_[side]) /
                 stride_[side] +
             1;
    };
    return {input.size(0), out_, extent(0), extent(1)};
  }

  std::int64_t in_, out_;
  Pair kernel_, stride_, padding_;
  ConvolutionOptions options_;
};

}  // namespace

LayerPtr convolution(std::int64_t in, std::int64_t out, ConvolutionOptions options) {
  return std::make_shared<Convolution>(in, out, options);
}

}  // namespace pipewright
