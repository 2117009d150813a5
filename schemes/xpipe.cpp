// SPDX-License-Identifier: Apache-2.0
// XPipe (Guan et al., 2019): 1F1B without flush over T micro-batches per update. The first
// micro-batch of a mini-batch, the bellwether, predicts, once for the forward and once for the
// backward; its siblings use the same Ŵ.
//   s_F = round((N + T − k/2 − 2)/T),  s_B = round((T + ⌊k/2⌋ − 1)/T)
#include <cmath>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class XPipe final : public Scheme {
 public:
  explicit XPipe(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    const WeightRule forward = [](const PassPlace& pass) {
      const double ahead =
          (pass.stages + pass.microbatches - pass.stage / 2.0 - 2) / pass.microbatches;
      return bellwether(pass, static_cast<int>(std::round(ahead)));
    };
    const WeightRule backward = [](const PassPlace& pass) {
      const int half_stage = pass.stage / 2;  // rounded down
      const double ahead =
          static_cast<double>(pass.microbatches + half_stage - 1) / pass.microbatches;
      return bellwether(pass, static_cast<int>(std::round(ahead)));
    };
    return pipeline_schedule(shape, {.flush = false}, forward, backward);
  }
  bool repeats() const override { return true; }

  std::string remark() const override {
    return "xpipe: how the predicted steps s are rounded (half away from zero, k/2 not rounded) is "
           "unverified against the paper";
  }

 private:
  static Weights bellwether(const PassPlace& pass, int ahead) {
    return Weights::of_version(pass.updates_before_first, ahead);
  }
};

}  // namespace

PIPEWRIGHT_SCHEME(
    xpipe, XPipe,
    "XPipe: one prediction per mini-batch, shared by its micro-batches (Guan et al., 2019).")

}  // namespace pipewright
