// SPDX-License-Identifier: Apache-2.0
// Textbook model parallelism: one (micro-)batch in flight, so every pass uses the newest weights
// and the result is plain SGD. The pipelined, unmitigated scheme that SpecTrain's tables call
// "vanilla MP" is `pipedream` with `weight_stashing: false`.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class ModelParallel final : public Scheme {
 public:
  explicit ModelParallel(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    return pipeline_schedule(shape, {.one_at_a_time = true});
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(model_parallel, ModelParallel,
                  "Vanilla model parallelism: one mini-batch in flight, exact SGD.")

}  // namespace pipewright
