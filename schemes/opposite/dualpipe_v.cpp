// SPDX-License-Identifier: Apache-2.0
// DualPipeV (DeepSeek-AI and Sea AI Lab, 2025): DualPipe cut in half. One replica lies on p workers
// in a V of two stages each, and the way back takes the place of the opposite replica: a forward of
// one way runs beside a backward of the other, and backwards are split where the pipeline fills and
// drains. The bubble is (p−1)(F∥B + B − 3W), for 2p+1 stages' activations on every worker.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class DualPipeV final : public Scheme {
 public:
  explicit DualPipeV(Options&) {}

  std::vector<int> placement(int stages) const override { return v_placement(stages); }

  Schedule schedule(const PipelineShape& shape) const override {
    return dual_pipe_schedule(with_placement(shape, v_placement(shape.stages), "dualpipe_v"));
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(dualpipe_v, DualPipeV,
                  "DualPipeV: DualPipe cut in half, on a V of two stages per worker (2025).")

}  // namespace pipewright
