// SPDX-License-Identifier: Apache-2.0
// GPipe (Huang et al., 2019): all M forwards of a mini-batch, then all M backwards from the last
// micro-batch to the first, then one update. Bubble (N−1)/(M+N−1).
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class GPipe final : public Scheme {
 public:
  explicit GPipe(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    return pipeline_schedule(shape, {.fill_drain = true});
  }
  bool repeats() const override { return true; }
};

}  // namespace

PIPEWRIGHT_SCHEME(gpipe, GPipe, "GPipe: fill and drain with M micro-batches (Huang et al., 2019).")

}  // namespace pipewright
