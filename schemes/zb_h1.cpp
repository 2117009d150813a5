// SPDX-License-Identifier: Apache-2.0
// ZB-H1 (Qi, Wan, Huang and Lin, 2024, "Zero Bubble Pipeline Parallelism"): 1F1B whose backwards
// are split. The gradient of the inputs, for which the stage before waits, is made at once; that of
// the weights k backwards later on worker k, where it fills a part of the bubble. Activations of as
// many micro-batches are held as by 1F1B's first stage; with equal times F = I = W the bubble is
// p−1 of them instead of 3(p−1). Each stage updates as soon as its own gradient is complete. With
// `chunks` = v stages per worker, as PyTorch's ScheduleInterleavedZeroBubble: (p−1)/v.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class ZeroBubbleH1 final : public Scheme {
 public:
  explicit ZeroBubbleH1(Options& options)
      : chunks_(static_cast<int>(options.integer("chunks", 1,
                                                 "Number of stages per worker (v). Stage s is on "
                                                 "worker s mod p, where p = stages / v, rounded "
                                                 "up.",
                                                 {1, 4096}))) {}

  std::vector<int> placement(int stages) const override {
    return looped_placement(stages, chunks_);
  }

  Schedule schedule(const PipelineShape& shape) const override {
    return looped_schedule(
        shape, {.chunks = chunks_, .warm_up = 1, .split = true, .weights_behind = 1}, "zb_h1");
  }
  bool repeats() const override { return true; }

 private:
  int chunks_;
};

}  // namespace

PIPEWRIGHT_SCHEME(zb_h1, ZeroBubbleH1,
                  "ZB-H1: 1F1B with split backwards, a third of its bubble (Qi et al., 2024).")

}  // namespace pipewright
