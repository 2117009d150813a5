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
  if (first != end_) waiting_ = waiting_at(first);
  const Program& program = program_of(first, minibatches);
  end_ = first + minibatches;
  waiting_ = program.versions.waiting;
  return program;
}

const Program& Programs::program_of(std::int64_t first, int minibatches) {
  const Experiment& e = *plan_.experiment;
  if (e.scheme->repeats())
    if (const Program* known = of_any_first(minibatches)) return *known;
  ProvedSchedule proved = proved_schedule(e, minibatches, static_cast<int>(first), waiting_);
  if (const Program* known = like(proved, minibatches)) return *known;
  if (kept_.size() == kKeptPrograms) kept_.pop_front();
  return kept_.emplace_back(compile(std::move(proved)));
}

/// Every segment updates each stage at least once, so the last `gradient_delay` segments before the
/// position hold all gradients that wait there.
std::vector<std::vector<int>> Programs::waiting_at(std::int64_t position) const {
  const Experiment& e = *plan_.experiment;
  std::int64_t first = position;
  for (int back = 0; first > 0 && back < e.perturbation.gradient_delay; ++back)
    first = plan_.drains.previous(first);
  std::vector<std::vector<int>> waiting;
  for (std::int64_t next = first; first < position; first = next) {
    next = plan_.drains.next(first);
    waiting = proved_schedule(e, next - first, static_cast<int>(first), waiting).versions.waiting;
  }
  return waiting;
}

const Program* Programs::of_any_first(int minibatches) const {
  return first_program(plan_, kept_, [&](const Program& program) {
    return program.minibatches() == minibatches && program.schedule.waiting == waiting_;
  });
}

const Program* Programs::like(const ProvedSchedule& proved, int minibatches) const {
  return first_program(plan_, kept_, [&](const Program& program) {
    return program.minibatches() == minibatches && program.schedule.waiting == waiting_ &&
           program.schedule.workers == proved.schedule.workers &&
           program.schedule.rules == proved.schedule.rules;
  });
}

}  // namespace pipewright
