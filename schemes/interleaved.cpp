// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B (Narayanan et al., 2021, Megatron-LM): `chunks` = v stages per worker, stage s
// on worker s mod p, p = N/v. Micro-batches go through a worker's stages in rounds of about p, so
// the pipe fills and drains in steps of 1/v of a worker's work: bubble (p−1)/(v·M+p−1). The order
// is PyTorch's ScheduleInterleaved1F1B; the weights are GPipe's.
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class Interleaved final : public Scheme {
 public:
  explicit Interleaved(Options& options)
      : chunks_(static_cast<int>(options.integer("chunks", 2,
                                                 "Number of stages per worker (v). Stage s is on "
                                                 "worker s mod p, where p = stages / v, rounded "
                                                 "up.",
                                                 {1, 4096}))) {}

  std::vector<int> placement(int stages) const override {
    return looped_placement(stages, chunks_);
  }

  Schedule schedule(const PipelineShape& shape) const override {
    return looped_schedule(shape, {.chunks = chunks_, .warm_up = chunks_ == 1 ? 1 : 2},
                           "interleaved");
  }
  bool repeats() const override { return true; }

 private:
  int chunks_;
};

}  // namespace

PIPEWRIGHT_SCHEME(
    interleaved, Interleaved,
    "Interleaved 1F1B: several stages per worker, a shorter bubble (Narayanan et al., "
    "2021).")

}  // namespace pipewright
