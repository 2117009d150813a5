// SPDX-License-Identifier: Apache-2.0
/// Schedules and text helpers for tests of slots and drawings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/schedule/builders.h"

namespace pipewright {

inline std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

inline Schedule pipedream(int stages, int minibatches) {
  return pipeline_schedule({.stages = stages, .minibatches = minibatches}, {.flush = false},
                           latest_weights, forward_weights);
}

/// SpecTrain's version 1: both passes predict ⌊k/2⌋ steps beyond the version that the gradient is
/// applied to.
inline Schedule spectrain(int stages, int minibatches) {
  return pipeline_schedule(
      {.stages = stages, .minibatches = minibatches}, {.flush = false},
      [](const PassPlace& pass) { return Weights::latest(pass.depth() + pass.stage / 2); },
      [](const PassPlace& pass) { return Weights::latest(pass.stage / 2); });
}

/// SpecTrain's version 2: the forward predicts D steps, and the backward reuses the prediction.
inline Schedule spectrain_2(int stages, int minibatches) {
  return pipeline_schedule(
      {.stages = stages, .minibatches = minibatches}, {.flush = false},
      [](const PassPlace& pass) { return Weights::latest(pass.depth()); }, forward_weights);
}

/// Interlocking of width 2 on three stages: stage 0 learns from the auxiliary loss of stage 1,
/// which stage 1 relays without learning from it; stages 1 and 2 learn from the last loss.
inline Schedule pairwise() {
  const PipelineShape shape{.stages = 3, .minibatches = 2};
  std::vector<std::vector<Action>> orders(3);
  for (int minibatch = 0; minibatch < shape.minibatches; ++minibatch) {
    auto add = [&](ActionKind kind, int stage, int loss = 2) {
      orders[as_size(stage)].push_back(
          {.kind = kind, .stage = stage, .minibatch = minibatch, .loss = loss});
    };
    for (int stage = 0; stage < 3; ++stage) add(ActionKind::Forward, stage);
    add(ActionKind::Head, 1, 1);
    add(ActionKind::BackwardInput, 1, 1);
    add(ActionKind::Backward, 0, 1);
    add(ActionKind::Backward, 2);
    add(ActionKind::Backward, 1);
    for (int stage = 0; stage < 3; ++stage) add(ActionKind::Update, stage);
  }
  Schedule schedule = schedule_of_stages(shape, std::move(orders));
  schedule.learns_from = {{1}, {2}, {2}};
  schedule.auxiliary = {1};
  return schedule;
}

}  // namespace pipewright
