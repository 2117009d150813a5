// SPDX-License-Identifier: Apache-2.0
// ZB-H2 (Qi, Wan, Huang and Lin, 2024, "Zero Bubble Pipeline Parallelism"): split backwards and
// 2(p−1−k) warm-up forwards, so that with equal times F = I = W worker k is never idle between its
// first pass and its last, given M ≥ 2p−1 micro-batches. For that up to 2p−1 micro-batches are held
// instead of p. The gradient of the weights is made 2k backwards later. Each stage updates as soon
// as its own gradient is complete, and goes on with the next mini-batch; the paper's validation of
// updates afterwards is for global norms and non-finite values, which no update here depends on.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class ZeroBubbleH2 final : public Scheme {
 public:
  explicit ZeroBubbleH2(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    return looped_schedule(shape, {.warm_up = 2, .split = true, .weights_behind = 2}, "zb_h2");
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(zb_h2, ZeroBubbleH2,
                  "ZB-H2: no bubble, for about twice 1F1B's activations (Qi et al., 2024).")

}  // namespace pipewright
