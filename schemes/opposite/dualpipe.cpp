// SPDX-License-Identifier: Apache-2.0
// DualPipe (DeepSeek-AI, 2024, "DeepSeek-V3 Technical Report"): two replicas lie on the same p
// workers in opposite directions, p even, and each trains half of a mini-batch. In the steady state
// a worker runs a forward of one beside a backward of the other, as a fused pair, so that the
// messages of one are hidden by the computing of the other. Where the pipeline fills and drains,
// backwards are split. The bubble is (p/2−1)(F∥B + B − 3W), for p+1 micro-batches' activations on
// every worker and two stages' weights.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class DualPipe final : public Scheme {
 public:
  explicit DualPipe(Options&) {}

  std::vector<std::vector<int>> replica_placement(int stages, int replicas) const override {
    return opposite_placement(stages, replicas);
  }

  Schedule schedule(const PipelineShape& shape) const override {
    return dual_pipe_schedule(with_opposite_placement(shape, "dualpipe"));
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(dualpipe, DualPipe,
                  "DualPipe: opposite replicas, forwards beside backwards (DeepSeek-AI, 2024).")

}  // namespace pipewright
