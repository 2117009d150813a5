// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/predictions.h"

namespace pipewright {

Predictions predictions_of(const Schedule& schedule) {
  Predictions predictions;
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker) {
      if (action.weights.ahead == 0) continue;
      const auto& rule = schedule.rules[static_cast<std::size_t>(action.weights.rule)];
      predictions.any |= rule.kind != PredictionRule::Kind::Drift;
      predictions.by_drift |= rule.kind == PredictionRule::Kind::Drift;
      predictions.by_lookahead |= rule.kind == PredictionRule::Kind::Lookahead;
    }
  return predictions;
}

}  // namespace pipewright
