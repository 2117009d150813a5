/// The primitive layers models are made of, and the two ways to compose them. Initialisation is
/// PyTorch's default unless said otherwise. Images are [batch, channels, height, width].
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/stage/layer.h"

namespace pipewright {

enum class Activation : std::uint8_t { Identity, Relu, Tanh };
at::Tensor activate(Activation activation, const at::Tensor& x);

/// y = x Wᵀ + b, on the last dimension. weight [out, in], bias [out]; both uniform ±1/√in, or
/// normal(0, init_std) with zero bias when init_std > 0.
LayerPtr linear(std::int64_t in, std::int64_t out, double init_std = 0);

struct ConvolutionOptions {
  std::int64_t kernel = 3, stride = 1, padding = 0;
  bool bias = true;
  bool kaiming_fan_out = true;  ///< normal(0, √(2/(out·k²))), bias 0; else PyTorch's uniform
};
/// weight [out, in, k, k], bias [out].
LayerPtr convolution(std::int64_t in, std::int64_t out, ConvolutionOptions options);

/// weight and bias [channels]; buffers running_mean, running_var; statistics of the micro-batch in
/// training, running ones in evaluation; running variance unbiased, as PyTorch's.
LayerPtr batch_norm(std::int64_t channels, double eps = 1e-5, double momentum = 0.1);

LayerPtr activation(Activation kind);
LayerPtr max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0);
/// Adaptive average pooling to size × size.
LayerPtr average_pool_to(std::int64_t size);
LayerPtr flatten();  ///< everything but the batch into one dimension

/// Inverted dropout. The mask of element e of sample s is a function of (seed, layer name, epoch,
/// mini-batch, position of s in the mini-batch, e): no cut, micro-batch, replica or order changes it.
LayerPtr dropout(double probability);

/// The layers one after another, as one layer. Child c's parameters are "<name_c>.weight", or
/// "weight" where name_c is "".
LayerPtr sequence(std::vector<std::pair<std::string, LayerPtr>> children);

/// relu(body(x) + shortcut(x)); without a shortcut the input itself is added. Parameters of
/// `body` keep their names, those of `shortcut` are under "shortcut.".
LayerPtr residual(LayerPtr body, LayerPtr shortcut = nullptr);

}  // namespace pipewright
