// SPDX-License-Identifier: Apache-2.0
// PipeDream-2BW (Narayanan et al., 2021): 1F1B without flush over M ≥ N micro-batches per update;
// mini-batch t computes with W^(t−1) on every stage, so two versions suffice and the delay is
// exactly one update: W^(t+1) = W^(t) − lr·opt(∇f(W^(t−1))), with W^(0) for t = 0.
#include <algorithm>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class PipeDream2BW final : public Scheme {
 public:
  explicit PipeDream2BW(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    if (shape.microbatches < shape.stages)
      throw Error(
          ErrorKind::Experiment,
          concat("pipeline.microbatches is ", shape.microbatches,
                 "; pipedream_2bw needs at least as many as pipeline.stages, ", shape.stages));
    const WeightRule one_update_old = [](const PassPlace& pass) {
      return Weights::of_version(std::max(0, pass.minibatch - 1));
    };
    return pipeline_schedule(shape, {.flush = false}, one_update_old, forward_weights);
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(
    pipedream_2bw, PipeDream2BW,
    "PipeDream-2BW: double-buffered weights, delay of one update (Narayanan et al., 2021).")

}  // namespace pipewright
