// SPDX-License-Identifier: Apache-2.0
// V-Half (Qi, Wan, Amar and Lin, 2024, "Pipeline Parallelism with Controllable Memory"): split
// backwards on a V of two stages per worker. A micro-batch goes through the first half of the
// stages at half of V-Min's speed, in forward and in backward. So at most ⌊(p+2)/2⌋ micro-batches'
// activations are held, about half of those of 1F1B, and no worker idles in the steady state if
// W + 2I ≥ 2F and W + 2F ≥ 2I for the times of the passes.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class VHalf final : public Scheme {
 public:
  explicit VHalf(Options&) {}

  std::vector<int> placement(int stages) const override { return v_placement(stages); }

  Schedule schedule(const PipelineShape& shape) const override {
    return v_schedule(
        shape,
        [](int w, int p) {
          const int wait = p % 2 == 0 ? 3 : 0;  // so that no two passes meet in a slot
          return VBlock{2 * w, 3 * p - w - 2, 3 * p + wait + 2 * w - 1, 6 * p + wait - w - 2};
        },
        "v_half");
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(v_half, VHalf,
                  "V-Half: two stages per worker in a V, half of 1F1B's activations (Qi et al., "
                  "2024).")

}  // namespace pipewright
