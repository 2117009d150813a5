// SPDX-License-Identifier: Apache-2.0
// Staleness-aware learning rates (Zhang, Gupta, Lian and Liu, 2016, "Staleness-aware Async-SGD") on
// PipeDream's schedule: 1F1B without flush, each backward with the weights of its forward. A
// gradient of stage k is applied τ updates after the weights it was computed with have been read;
// with N stages and M micro-batches τ = (N−1−k)/M in the mean. The stage's learning rate is divided
// by max(1, τ)^power. With power 0 this is PipeDream.
#include <algorithm>
#include <cmath>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class StalenessAware final : public Scheme {
 public:
  explicit StalenessAware(Options& options)
      : power_(options.number("power", 1,
                              "Of the staleness that learning rates are divided by: 1 as in the "
                              "paper, 0 as PipeDream.",
                              {0, 4})) {}

  Schedule schedule(const PipelineShape& shape) const override {
    const ScaleRule slower = [&](int stage) {
      const double staleness = static_cast<double>(shape.stages - 1 - stage) / shape.microbatches;
      return std::pow(std::max(1.0, staleness), -power_);
    };
    return pipeline_schedule(shape, {.flush = false}, latest_weights, forward_weights, slower);
  }

 private:
  double power_;
};

}  // namespace

PIPEWRIGHT_SCHEME(staleness_aware, StalenessAware,
                  "PipeDream with learning rates divided by the staleness (Zhang et al., 2016).")

}  // namespace pipewright
