// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/remarks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/schedule/late_gradients.h"
#include "core/schedule/lent_weights.h"
#include "core/schedule/slots.h"

namespace pipewright {
namespace {

/// So many mini-batches are trained before those of the remark: it is about the steady state, not
/// about a warm-up that a scheme begins with.
constexpr int kAfterAnyWarmUp = 1'000'000'000;

/// The share of slots in which a worker does nothing, over all workers, in rounded percent.
int idle_percent(const Schedule& schedule) {
  double busy = 0;
  for (const auto& worker : schedule.workers)
    for (const Action& action : worker) busy += slots_of(action.kind);
  const double slots = static_cast<double>(schedule.workers.size()) * slot_times(schedule).makespan;
  return slots > 0 ? static_cast<int>(std::lround(100 * (1 - busy / slots))) : 0;
}

bool is_synchronous(const ProvedSchedule& proved) {
  if (any_action(proved.schedule, [](const Action& action) { return action.weights.ahead != 0; }))
    return false;
  return std::ranges::all_of(
      proved.versions.stages, [](const std::vector<StageVersions>& replicas) {
        return std::ranges::all_of(replicas, [](const StageVersions& stage) {
          return stage.forward_staleness == 0 && stage.backward_staleness == 0;
        });
      });
}

/// The scheme's schedule; nullopt if it cannot run in this shape, or is not valid in it.
std::optional<ProvedSchedule> schedule_of(const Scheme& scheme, const PipelineShape& shape) {
  try {
    return prove(scheme.schedule(shape));
  } catch (const Error&) {
    return {};
  }
}

/// [replica · N + stage]: the updates that each stage makes, in all rounds of the loop.
std::vector<int> updates_of(const ProvedSchedule& proved) {
  const PipelineShape& shape = proved.schedule.shape;
  std::vector<int> updates(as_size(shape.replicas * shape.stages), 0);
  for_each_action(proved.schedule, [&](ActionPlace, const Action& action) {
    if (action.kind == ActionKind::Update)
      ++updates[as_size(action.replica * shape.stages + action.stage)];
  });
  if (proved.loop)
    for (std::size_t i = 0; i < updates.size(); ++i)
      updates[i] += (proved.loop->rounds - 1) * proved.loop->step.updates[i];
  return updates;
}

std::string late_text(const ProvedSchedule& proved, const LateGradients& late, int pair) {
  const TiedCopies& tied = proved.schedule.shape.tied[as_size(pair)];
  std::array<int, 2> times{};  // there, back
  for_each_action(proved.schedule, [&](ActionPlace place, const Action& action) {
    for (const LateGradient& each : late.given(place))
      if (action.replica == 0 && each.pair == pair) ++times[each.back ? 1 : 0];
  });
  return concat(
      "stages ", tied.first, " and ", tied.second,
      " have copies of a parameter and send each other its gradients, ", bytes_text(tied.bytes),
      " each: ", counted(times[0], "time"), " there and ", counted(times[1], "time"), " back in ",
      counted(proved.schedule.shape.minibatches, "mini-batch"), "; stage ", tied.second,
      " applies the other's ", counted(late.lag(pair, false), "update"), " after its own");
}

}  // namespace

std::string idle_remark(const Scheme& scheme, PipelineShape shape) {
  if (shape.microbatches >= shape.stages) return {};
  shape.minibatches = 3;
  shape.first_minibatch = kAfterAnyWarmUp;
  const auto now = schedule_of(scheme, shape);
  if (!now || !is_synchronous(*now)) return {};
  const int given = shape.whole_microbatches(), enough = 2 * shape.stages;
  shape.microbatches = enough * shape.slices;
  const auto more = schedule_of(scheme, shape);
  if (!more) return {};
  const int idle = idle_percent(now->schedule), less = idle_percent(more->schedule);
  if (less >= idle) return {};
  return concat(counted(given, "micro-batch"), " for ", counted(shape.stages, "stage"),
                ": workers are idle in ", idle, " % of their slots; with ",
                "pipeline.microbatches: ", enough, " it would be ", less, " %");
}

std::string update_remark(const ProvedSchedule& proved) {
  const PipelineShape& shape = proved.schedule.shape;
  if (!shape.training) return {};
  const int minibatches = proved.minibatches();
  const std::vector<int> updates = updates_of(proved);
  const auto fewest = std::ranges::min_element(updates);
  if (fewest == updates.end() || *fewest >= minibatches) return {};
  const auto others =
      std::ranges::count_if(updates, [&](int each) { return each < minibatches; }) - 1;
  const auto stage = (fewest - updates.begin()) % shape.stages;
  std::string text = concat("stage ", stage, " updates its weights ", counted(*fewest, "time"),
                            " in ", counted(minibatches, "mini-batch"));
  if (others > 0) text += concat(", and ", counted(others, "other stage"), " not in all of them");
  return text + "; the gradients of a mini-batch without an update are added to those of the next";
}

std::string lent_remark(const ProvedSchedule& proved) {
  const LentWeights lent(proved.schedule, proved.index, proved.versions);
  std::string text;
  for (const Loan& loan : lent.loans()) {
    int there = 0, back = 0;
    for_each_action(proved.schedule, [&](ActionPlace, const Action& action) {
      if (action.stage != loan.to || action.replica != 0) return;
      if (action.kind == ActionKind::Forward && lent.take(action, loan.from)) ++there;
      if (is_backward(action.kind) && lent.give(action, loan.from)) ++back;
    });
    text += concat(
        text.empty() ? "" : "; ", "stage ", loan.to, " computes with weights of stage ", loan.from,
        ", those that its forward of the same micro-batch has read: ", bytes_text(loan.bytes),
        " cross ", counted(there, "time"), ", and as much comes back ", counted(back, "time"),
        " in ", counted(proved.schedule.shape.minibatches, "mini-batch"));
  }
  const LateGradients late(proved);
  for (int pair = 0; pair < static_cast<int>(proved.schedule.shape.tied.size()); ++pair)
    text += concat(text.empty() ? "" : "; ", late_text(proved, late, pair));
  return text;
}

}  // namespace pipewright
