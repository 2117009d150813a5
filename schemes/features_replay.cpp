// SPDX-License-Identifier: Apache-2.0
// Features replay (Huo, Gu and Huang, 2018): 1F1B without flush in which a stage keeps the inputs
// of a micro-batch only. When its gradient comes, the stage runs forward again with its newest
// weights and then backward with the same ones: activations and weights of a backward agree, though
// the outputs that were sent on are of older weights. One version is kept. The last stage goes back
// at once, so it runs nothing again.
#include <utility>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

/// The forward that is run again for a backward, with the weights that the backward reads.
Action replay_before(Action backward, int last_stage) {
  backward.kind = ActionKind::Recompute;
  backward.loss = last_stage;
  return backward;
}

class FeaturesReplay final : public Scheme {
 public:
  explicit FeaturesReplay(Options&) {}

  Schedule schedule(const PipelineShape& shape) const override {
    Schedule schedule = pipeline_schedule(shape, {.flush = false}, latest_weights, latest_weights);
    const int last = shape.stages - 1;
    for (auto& worker : schedule.workers) {
      std::vector<Action> actions;
      for (const Action& action : worker) {
        if (action.kind == ActionKind::Backward && action.stage != last)
          actions.push_back(replay_before(action, last));
        actions.push_back(action);
      }
      worker = std::move(actions);
    }
    return schedule;
  }
  bool repeats() const override { return true; }

  std::string remark() const override {
    return "features_replay: that the last stage replays nothing, and that batch norm's running "
           "statistics are those of the first forwards, is unverified against the paper";
  }
};

}  // namespace

PIPEWRIGHT_SCHEME(features_replay, FeaturesReplay,
                  "Features replay: inputs are kept, and run again with the newest weights (Huo et "
                  "al., 2018).")

}  // namespace pipewright
