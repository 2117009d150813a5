// SPDX-License-Identifier: Apache-2.0
/// Inputs of samples that have several, each with a name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

/// One of several inputs of a sample. Models and data sets agree on them by name.
struct NamedInput {
  std::string name;
  std::vector<std::int64_t> shape;   ///< of a sample; {} is one number
  at::ScalarType type = at::kFloat;  ///< kFloat or kDouble, kLong or kBool
  std::int64_t vocabulary = 0;       ///< if positive, the numbers are tokens in [0, vocabulary)

  friend bool operator==(const NamedInput&, const NamedInput&) = default;
};

}  // namespace pipewright
