// SPDX-License-Identifier: Apache-2.0
// 1F1B with a flush after every mini-batch: PipeDream-flush (Narayanan et al., 2021), the schedule
// of DAPPLE (Fan et al., 2021). The weights are GPipe's; at most N−k micro-batches are held.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class OneForwardOneBackward final : public Scheme {
 public:
  explicit OneForwardOneBackward(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    return pipeline_schedule(shape, {.flush = true});
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(one_f_one_b, OneForwardOneBackward,
                  "1F1B with flush: PipeDream-flush, DAPPLE (Narayanan et al.; Fan et al., 2021).")

}  // namespace pipewright
