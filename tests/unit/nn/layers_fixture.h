// SPDX-License-Identifier: Apache-2.0
/// Helpers for tests of layers: random tensors, and a layer run with other weights in the backward
/// than in the forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/nn/layer.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {

using tolerance::kFloat32Relative;
using tolerance::kFloat64Relative;

/// A float64 tensor of standard normal numbers, the same for equal seeds.
at::Tensor random(at::IntArrayRef shape, std::uint64_t seed);
/// A random value for each declared parameter, whatever its initialiser.
std::vector<at::Tensor> random_parameters(const Layer& layer, std::uint64_t seed);
std::vector<at::Tensor> fresh_buffers(const Layer& layer, at::ScalarType type = at::kDouble);

/// max |a − b| / max |b|; infinite if shapes differ.
double relative_error(const at::Tensor& a, const at::Tensor& b);

/// forward() on plain tensors, without gradients.
at::Tensor apply(const Layer& layer, const at::Tensor& x, const std::vector<at::Tensor>& parameters,
                 const Pass& pass = {});

struct Gradients {
  at::Tensor output, input;
  std::vector<at::Tensor> parameters;
};

/// How the backward's weights replace those of the forward.
enum class Swap : std::uint8_t {
  Storage,  ///< the flat storage behind all leaves points to other memory, as in stages
  Leaf      ///< each leaf gets another storage (set_data), which does not work for Linear
};

/// Gradients of Σ output · grad_output, with the weights `forward` in the forward and `backward` in
/// the backward, in the precision of x.
Gradients gradients(const Layer& layer, const at::Tensor& x, const std::vector<at::Tensor>& forward,
                    const std::vector<at::Tensor>& backward, std::uint64_t grad_output_seed,
                    Swap swap = Swap::Storage, const Pass& pass = {});

/// The gradient at the output that belongs to a `grad_output_seed`.
at::Tensor grad_output(const at::Tensor& output, std::uint64_t seed);

}  // namespace pipewright::test
