// SPDX-License-Identifier: Apache-2.0
/// Lists of tensors, or of their shapes, each with its name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
using NamedShapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

}  // namespace pipewright
