// SPDX-License-Identifier: Apache-2.0
#include "core/training/programs.h"

#include <utility>

namespace pipewright {
namespace {

constexpr std::size_t kKeptPrograms = 8;

/// The first program that `fits`, the plan's before all others; null: none does.
template <class Fits>
const Program* first_program(const Plan& plan, const std::deque<Program>& kept, const Fits& fits) {
  if (fits(plan.training)) return &plan.training;
  for (const Program& program : kept)
    if (fits(program)) return &program;
  return nullptr;
}

}  // namespace

const Program& Programs::segment(std::int64_t first, int minibatches) {
  const Experiment& e = *plan_.experiment;
  if (e.scheme->repeats())
    if (const Program* known = of_any_first(minibatches)) return *known;
  ProvedSchedule proved = proved_schedule(e, minibatches, static_cast<int>(first));
  if (const Program* known = like(proved, minibatches)) return *known;
  if (kept_.size() == kKeptPrograms) kept_.pop_front();
  return kept_.emplace_back(compile(std::move(proved)));
}

const Program* Programs::of_any_first(int minibatches) const {
  return first_program(
      plan_, kept_, [&](const Program& program) { return program.minibatches() == minibatches; });
}

const Program* Programs::like(const ProvedSchedule& proved, int minibatches) const {
  return first_program(plan_, kept_, [&](const Program& program) {
    return program.minibatches() == minibatches &&
           program.schedule.workers == proved.schedule.workers &&
           program.schedule.rules == proved.schedule.rules;
  });
}

}  // namespace pipewright
