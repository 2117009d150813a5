// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/prove.h"

#include <atomic>
#include <utility>

#include "core/schedule/execution_order.h"
#include "core/schedule/rewrites/offload.h"
#include "core/schedule/rules.h"
#include "core/schedule/slices.h"

namespace pipewright {
namespace {

struct Rule {
  void (*check)(const Schedule&, const PassIndex&);
  bool of_evaluations = true;
};

/// The rules of a schedule whose numbers are within their ranges. Each may count on those above it.
constexpr Rule kRules[] = {
    {.check = check_complete},
    {.check = check_pairs},
    {.check = check_halves},
    {.check = check_slices},
    {.check = check_recomputations, .of_evaluations = false},
    {.check = check_host_copies, .of_evaluations = false},
    {.check = check_gradients, .of_evaluations = false},
    {.check = check_meetings, .of_evaluations = false},
};

std::atomic<std::int64_t> all_actions = 0;

Versions proved_versions(const Schedule& schedule, const PassIndex& index) {
  try {
    return resolve_versions(schedule, index);
  } catch (const MissingWeights& error) {
    throw InvalidSchedule(error.message(), error.place());
  }
}

}  // namespace

int ProvedSchedule::minibatches() const {
  const int once = schedule.shape.minibatches;
  return loop ? once + (loop->rounds - 1) * loop->step.minibatches : once;
}

ProvedSchedule prove(Schedule&& schedule) {
  check_slice_numbers(schedule.shape);
  check_numbers(schedule);
  ProvedSchedule proved;
  proved.index = PassIndex(schedule);
  for (const Rule& rule : kRules)
    if (schedule.shape.training || rule.of_evaluations) rule.check(schedule, proved.index);
  proved.order = execution_order(schedule, proved.index);
  all_actions += std::ssize(proved.order);
  proved.versions = proved_versions(schedule, proved.index);
  check_weights_of_halves(schedule, proved.index, proved.versions);
  check_weights_of_recomputations(schedule, proved.index, proved.versions);
  proved.schedule = std::move(schedule);
  return proved;
}

std::int64_t proved_actions() {
  return all_actions;
}

}  // namespace pipewright
