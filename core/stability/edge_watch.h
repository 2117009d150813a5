// SPDX-License-Identifier: Apache-2.0
/// Watches, while a run trains, how far the curvature that is measured lies past the edges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/stability/stability_report.h"

namespace pipewright {

/// Used by one thread.
class EdgeWatch {
 public:
  EdgeWatch(StabilityReport report, std::int64_t minibatches_per_epoch);

  /// Takes the curvature of a stage after so many mini-batches, and the learning rate of the last
  /// one.
  void measured(int stage, double curvature, double lr, std::int64_t minibatches);
  /// A warning, once for each stage: measurements of a whole epoch, and two at least, were all past
  /// its edge. Empty: there is none.
  std::string warning();
  /// Describes the stage that exceeded its limit most at the last measurement; empty if none did.
  std::string farthest() const;

 private:
  struct Standing {
    double curvature = 0, lr = 0;
    std::optional<std::int64_t> past_since;  ///< mini-batches after which it was first past
    std::int64_t minibatches = 0;
    bool told = false;
  };
  double ratio(int stage, const Standing& standing) const;
  std::string text_of(int stage, const Standing& standing) const;

  StabilityReport report_;
  std::int64_t minibatches_per_epoch_;
  std::map<int, Standing> stages_;
};

}  // namespace pipewright
