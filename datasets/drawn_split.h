// SPDX-License-Identifier: Apache-2.0
/// The options `split` and `seed` of data sets that have one part: which of its samples are for
/// testing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

class DrawnSplit {
 public:
  DrawnSplit(Options& options, double fallback);

  /// Whether there is to be a split.
  bool wanted() const { return split_ > 0; }
  const std::string& where() const { return where_; }  ///< place of the option

  /// Draws the test samples of so many, by the seed; their indices and those of the training
  /// samples, which come first, are in ascending order. Throws Error{Experiment} if none is left to
  /// train on; `source` names where the samples are.
  std::array<std::vector<std::int64_t>, 2> draw(std::int64_t samples,
                                                const std::string& source) const;

 private:
  double split_;
  std::uint64_t seed_;
  std::string where_;
};

}  // namespace pipewright
