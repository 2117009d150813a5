// SPDX-License-Identifier: Apache-2.0
/// Mean and standard deviation, computed in the same way for all reports.
#pragma once

#include <span>

namespace pipewright {

struct Moments {
  double count = 0;
  double mean = 0;      ///< kNoNumber without values
  double variance = 0;  ///< sample variance (n − 1); kNoNumber with fewer than two values

  double std() const;
};

/// The moments of values, summed in the given order, so that the bits depend on nothing else.
Moments moments_of(std::span<const double> values);

}  // namespace pipewright
