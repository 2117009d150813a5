/// What the tests of layers share: made-up tensors, and a layer run with other weights in backward
/// than in forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/stage/layer.h"

namespace pipewright::test {

/// Sums of at most a few thousand products in float64, in another order than the library's:
/// relative error below 10⁴ · 2⁻⁵³ ≈ 1.1e-12, and far below it for errors of random sign.
inline constexpr double kFloat64Relative = 1e-12;
/// The same in float32: 10³ · 2⁻²⁴ ≈ 6e-5, a few hundred products and a batch-norm division.
inline constexpr double kFloat32Relative = 1e-4;

/// float64, standard normal, the same for equal seeds.
at::Tensor random(at::IntArrayRef shape, std::uint64_t seed);
/// A value for each declared parameter, whatever its initialiser.
std::vector<at::Tensor> random_parameters(const Layer& layer, std::uint64_t seed);
std::vector<at::Tensor> fresh_buffers(const Layer& layer, at::ScalarType type = at::kDouble);

/// max |a − b| / max |b|; infinite where shapes differ.
double relative_error(const at::Tensor& a, const at::Tensor& b);

/// forward() on plain tensors, without gradients.
at::Tensor apply(const Layer& layer, const at::Tensor& x, const std::vector<at::Tensor>& parameters,
                 const Pass& pass = {});

struct Gradients {
  at::Tensor output, input;
  std::vector<at::Tensor> parameters;
};

/// How the backward weights take the place of the forward ones.
enum class Swap : std::uint8_t {
  Storage,  ///< the flat storage behind all leaves points at other memory: what stages do
  Leaf      ///< each leaf gets another storage (set_data): the trap, for Linear
};

/// Gradients of Σ output · grad_output, with `forward` during forward() and `backward` in backward.
/// In the precision of what is given.
Gradients gradients(const Layer& layer, const at::Tensor& x, const std::vector<at::Tensor>& forward,
                    const std::vector<at::Tensor>& backward, std::uint64_t grad_output_seed,
                    Swap swap = Swap::Storage, const Pass& pass = {});

/// What `grad_output_seed` stands for.
at::Tensor grad_output(const at::Tensor& output, std::uint64_t seed);

}  // namespace pipewright::test
