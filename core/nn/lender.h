// SPDX-License-Identifier: Apache-2.0
/// A layer whose stage lends one of its parameters to a later layer, or has a copy of one that
/// another stage has, too (lend() and Tie::Late in layers.h).
#pragma once

#include <cstddef>

namespace pipewright {

class Lender {
 public:
  virtual ~Lender() = default;
  /// The position of the parameter among the layer's.
  virtual std::size_t lent_parameter() const = 0;
};

}  // namespace pipewright
