// SPDX-License-Identifier: Apache-2.0
/// Initial values of parameters. They are drawn from streams named after the parameters, so they
/// depend on no cut, order or execution.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/nn/layer.h"

namespace pipewright {

/// Fills `parameter` (any floating type and device) from the stream (seed, "init", full name).
/// Values are drawn in double, element by element in row-major order, then rounded.
void initialize(at::Tensor parameter, const Initializer& how, std::uint64_t seed,
                const std::string& full_name);

}  // namespace pipewright
