// SPDX-License-Identifier: Apache-2.0
/// The formula for weights and inputs of models that were also run with torchgpipe's own code.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/nn/layer.h"

namespace pipewright::test {

/// A pseudo-random number in [0, 1) for an element of a tensor.
double hashed(std::uint32_t tensor, std::uint32_t element);
/// A float64 tensor of such numbers, scaled to [−1, 1).
at::Tensor filled(std::uint32_t tensor, at::IntArrayRef shape);
/// A tensor of such numbers with the scale of a parameter of that kind.
at::Tensor filled(std::uint32_t tensor, const ParameterSpec& spec);

}  // namespace pipewright::test
