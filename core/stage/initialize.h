/// First values of parameters: drawn from streams named after them, so that no cut, order or
/// execution changes one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/stage/layer.h"

namespace pipewright {

/// Fills `parameter` (any float type and device) from the stream (seed, "init", full name); drawn
/// in double, element by element in row-major order, then rounded.
void initialize(at::Tensor parameter, const Initializer& how, std::uint64_t seed,
                const std::string& full_name);

}  // namespace pipewright
