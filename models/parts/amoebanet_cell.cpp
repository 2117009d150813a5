// SPDX-License-Identifier: Apache-2.0
#include "models/parts/amoebanet_cell.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

enum class Kind : std::uint8_t {
  None,        ///< the state itself, or a factorized reduction of it
  Average3x3,  ///< without padding in the mean; also in place of the paper's 3×3 max-pool
  Max2x2,
  Convolution1x1,
  Convolution3x3,  ///< bottleneck with a quarter of the channels
  Convolution1x7   ///< bottleneck with 1×7 and 7×1
};

struct Operation {
  std::size_t state;  ///< state that it reads
  Kind kind;
};

/// Operations 2q and 2q + 1 make state 2 + q.
constexpr std::array<Operation, 10> kNormal{{{1, Kind::Convolution1x1},
                                             {1, Kind::Average3x3},
                                             {1, Kind::None},
                                             {0, Kind::Convolution1x7},
                                             {0, Kind::Convolution1x1},
                                             {0, Kind::Convolution1x7},
                                             {2, Kind::Average3x3},
                                             {2, Kind::None},
                                             {1, Kind::Average3x3},
                                             {5, Kind::Convolution1x1}}};
constexpr std::array<Operation, 10> kReduction{{{0, Kind::Max2x2},
                                                {0, Kind::Average3x3},
                                                {2, Kind::None},
                                                {1, Kind::Convolution3x3},
                                                {2, Kind::Convolution1x7},
                                                {2, Kind::Average3x3},
                                                {3, Kind::None},
                                                {1, Kind::Max2x2},
                                                {2, Kind::Average3x3},
                                                {3, Kind::Convolution1x1}}};
constexpr std::array<std::size_t, 4> kNormalOutput{0, 3, 4, 6};
constexpr std::array<std::size_t, 3> kReductionOutput{4, 5, 6};

/// Factorized reduction: halves the size without dropping every second pixel. With y = ReLU(x), it
/// concatenates a 1×1 convolution with stride 2 of y and another one of y shifted by one pixel up
/// and left; then batch norm.
class FactorizedReduction final : public Composite {
 public:
  FactorizedReduction(std::int64_t in, std::int64_t out) {
    for (const char* half : {"conv1.", "conv2."})
      add(convolution(in, out / 2,
                      {.kernel = 1, .stride = 2, .bias = false, .kaiming_fan_out = false}),
          half, "");
    add(batch_norm(out), "bn.", "");
    check_names();
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor y = activate(Activation::Relu, input);
    const at::Tensor moved = at::constant_pad_nd(y.slice(2, 1).slice(3, 1), {0, 1, 0, 1});
    const at::Tensor both = at::cat({parts_[0].forward(y, parameters, buffers, pass),
                                     parts_[1].forward(moved, parameters, buffers, pass)},
                                    1);
    return parts_[2].forward(both, parameters, buffers, pass);
  }
};

LayerPtr factorized_reduction(std::int64_t in, std::int64_t out) {
  return std::make_shared<FactorizedReduction>(in, out);
}

/// A 1×1 convolution to a quarter of the channels, the `inner` convolutions, and a 1×1 convolution
/// back.
LayerPtr bottleneck(std::int64_t channels, std::span<const ConvolutionOptions> inner) {
  const std::int64_t quarter = channels / 4;
  std::vector<std::pair<std::string, LayerPtr>> units;
  const auto add = [&](std::int64_t in, std::int64_t out, const ConvolutionOptions& options) {
    units.emplace_back(concat("conv", units.size() + 1),
                       relu_convolution_norm(in, out, options, /*in_place=*/!units.empty()));
  };
  add(channels, quarter, {.kernel = 1});
  for (const ConvolutionOptions& options : inner) add(quarter, quarter, options);
  add(quarter, channels, {.kernel = 1});
  return sequence(std::move(units));
}

LayerPtr make(Kind kind, std::int64_t channels, std::int64_t stride) {
  switch (kind) {
    case Kind::None:
      return stride == 1 ? activation(Activation::Identity)
                         : factorized_reduction(channels, channels);
    case Kind::Average3x3: return average_pool(3, stride, 1, /*count_padding=*/false);
    case Kind::Max2x2: return max_pool(2, stride);
    case Kind::Convolution1x1:
      return relu_convolution_norm(channels, channels, {.kernel = 1, .stride = stride});
    case Kind::Convolution3x3:
      return bottleneck(channels, {{{.kernel = 3, .stride = stride, .padding = 1}}});
    case Kind::Convolution1x7:
      return bottleneck(channels, {{{.kernel = 1,
                                     .stride = 1,
                                     .padding = 0,
                                     .kernel_width = 7,
                                     .stride_width = stride,
                                     .padding_width = 3},
                                    {.kernel = 7,
                                     .stride = stride,
                                     .padding = 3,
                                     .kernel_width = 1,
                                     .stride_width = 1,
                                     .padding_width = 0}}});
  }
  PIPEWRIGHT_CHECK(false, "no such operation");
}

class AmoebaCell final : public Composite {
 public:
  explicit AmoebaCell(const AmoebaCellOptions& options)
      : operations_(options.reduces ? kReduction : kNormal),
        output_(options.reduces ? std::span<const std::size_t>(kReductionOutput) : kNormalOutput) {
    const std::int64_t channels = options.channels;
    PIPEWRIGHT_CHECK(channels > 0 && channels % 4 == 0, "a cell with states of ", channels,
                     " channels");
    add(relu_convolution_norm(options.last, channels, {.kernel = 1}), "reduce1.");
    add(second_state(options), "reduce2.");
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const bool halves = options.reduces && operations_[i].state < 2;
      add(make(operations_[i].kind, channels, halves ? 2 : 1), concat("operations.", i, "."));
    }
    check_names();
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    const auto part = [&](std::size_t i, const at::Tensor& x) {
      return parts_[i].forward(x, parameters, buffers, pass);
    };
    std::vector<at::Tensor> states{part(0, inputs[0]), part(1, inputs.back())};
    for (std::size_t i = 0; i < operations_.size(); i += 2)
      states.push_back(at::add(part(2 + i, states[operations_[i].state]),
                               part(3 + i, states[operations_[i + 1].state])));
    std::vector<at::Tensor> output;
    for (const std::size_t state : output_) output.push_back(states[state]);
    return {at::cat(output, 1), inputs[0]};
  }

 private:
  static LayerPtr second_state(const AmoebaCellOptions& options) {
    if (options.after_reduction) return factorized_reduction(options.before_last, options.channels);
    if (options.before_last == options.channels) return activation(Activation::Identity);
    return relu_convolution_norm(options.before_last, options.channels, {.kernel = 1});
  }

  std::span<const Operation> operations_;
  std::span<const std::size_t> output_;
};

}  // namespace

LayerPtr amoeba_cell(const AmoebaCellOptions& options) {
  return std::make_shared<AmoebaCell>(options);
}

std::int64_t amoeba_cell_channels(const AmoebaCellOptions& options) {
  return options.channels *
         (options.reduces ? std::ssize(kReductionOutput) : std::ssize(kNormalOutput));
}

LayerPtr relu_convolution_norm(std::int64_t in, std::int64_t out, ConvolutionOptions options,
                               bool in_place) {
  options.bias = false;
  options.kaiming_fan_out = false;
  return sequence({{"", activation(Activation::Relu, in_place)},
                   {"", convolution(in, out, options)},
                   {"bn", batch_norm(out)}});
}

}  // namespace pipewright
