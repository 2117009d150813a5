// SPDX-License-Identifier: Apache-2.0
// Seq1F1B (Sun et al., 2024, "Seq1F1B: Efficient Sequence-Level Pipeline Parallelism for Large
// Language Model Training"): 1F1B over the s slices of sequences (pipeline.slices) instead of over
// micro-batches. Stage k of N begins with N−k−2+s forwards of slices; then the i-th backward, after
// one more forward, is of slice s−1−(i mod s) of micro-batch ⌊i/s⌋. So a stage's slices go forward
// in order and back in reverse. Fill and drain are s times as short as those of 1F1B, and stage k
// holds N−1−k+s slices. With one slice it is `one_f_one_b`.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class Seq1F1B final : public Scheme {
 public:
  explicit Seq1F1B(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    return pipeline_schedule(shape, {.flush = true, .in_reverse = shape.slices});
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(seq1f1b, Seq1F1B,
                  "1F1B over slices of sequences, for a shorter bubble (Sun et al., 2024).")

}  // namespace pipewright
