// SPDX-License-Identifier: Apache-2.0
// Data parallelism: `pipeline.replicas` copies of the whole model, whose gradients are averaged
// over the mini-batch before every update. The model is one stage; the mini-batch is split over the
// replicas.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class DataParallel final : public Scheme {
 public:
  explicit DataParallel(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    if (shape.stages != 1)
      throw Error(ErrorKind::Experiment,
                  concat("pipeline.stages is ", shape.stages,
                         "; data_parallel has one stage: set pipeline.stages: "
                         "1 and pipeline.replicas"));
    return pipeline_schedule(shape, {.one_at_a_time = true});
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(data_parallel, DataParallel,
                  "Data parallelism: replicas of the whole model, gradients averaged.")

}  // namespace pipewright
