// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/predictions.h"

#include "core/schedule/action_place.h"

namespace pipewright {

Predictions predictions_of(const Schedule& schedule) {
  Predictions predictions;
  for_each_action(schedule, [&](ActionPlace, const Action& action) {
    if (action.weights.ahead == 0) return;
    const auto& rule = schedule.rules[as_size(action.weights.rule)];
    predictions.any |= rule.kind != PredictionRule::Kind::Drift;
    predictions.by_drift |= rule.kind == PredictionRule::Kind::Drift;
    predictions.by_lookahead |= rule.kind == PredictionRule::Kind::Lookahead;
  });
  return predictions;
}

}  // namespace pipewright
