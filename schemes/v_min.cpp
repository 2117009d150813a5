// SPDX-License-Identifier: Apache-2.0
// V-Min (Qi, Wan, Amar and Lin, 2024, "Pipeline Parallelism with Controllable Memory"): split
// backwards on a V of two stages per worker, whose building block takes a micro-batch through all
// stages and back without waiting. So at most ⌊(p+4)/3⌋ micro-batches' activations are held, about
// a third of those of 1F1B. With equal times F = I = W no worker idles in the steady state; with
// others workers wait for each other.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class VMin final : public Scheme {
 public:
  explicit VMin(Options&) {}

  std::vector<int> placement(int stages) const override { return v_placement(stages); }

  Schedule schedule(const PipelineShape& shape) const override {
    return v_schedule(
        shape,
        [](int w, int p) {
          const int wait = p % 3 == 0 ? 2 : 0;  // so that no two passes meet in a slot
          return VBlock{w, 2 * p - w - 1, 2 * p + wait + w, 4 * p + wait - w - 1};
        },
        "v_min");
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(v_min, VMin,
                  "V-Min: two stages per worker in a V, a third of 1F1B's activations (Qi et al., "
                  "2024).")

}  // namespace pipewright
