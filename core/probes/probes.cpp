// SPDX-License-Identifier: Apache-2.0
#include "core/probes/probes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "core/base/as_size.h"

namespace pipewright {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether a pass adds to the gradients of its stage's weights.
bool adds(const Action& action) {
  return action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeight;
}

ProbedStage facts_of(const Program& program, const std::vector<int>& delays, int stage) {
  ProbedStage facts{.stage = stage,
                    .microbatches = program.schedule.shape.microbatches,
                    .delay = delays.empty() ? 0 : delays[as_size(stage)]};
  for (const auto& worker : program.schedule.workers)
    for (const Action& action : worker)
      if (action.stage == stage && action.weights.ahead < 0) facts.extrapolates = true;
  return facts;
}

}  // namespace

void sort_rows(std::vector<ProbeRow>& rows) {
  std::ranges::stable_sort(rows, {}, [](const ProbeRow& row) {
    return std::tuple(row.minibatch, row.stage, row.probe);
  });
}

Probes::Probes(const std::vector<NamedProbe>& probes, const Program& program,
               const std::vector<int>& delays)
    : probes_(probes), sites_(as_size(program.schedule.shape.stages)) {
  for (std::size_t i = 0; i < probes.size(); ++i)
    if (probes[i].probe->whole_samples() > 0) whole_.push_back(static_cast<int>(i));
  std::vector<ProbedStage> stages;
  for (int stage = 0; stage < program.schedule.shape.stages; ++stage)
    stages.push_back(facts_of(program, delays, stage));
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const Probe& probe = *probes[i].probe;
    auto placed = probe.at_all(stages);
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      if (placed[stage])
        sites_[stage].probes.push_back(
            {.probe = static_cast<int>(i), .every = probe.every(), .at = std::move(placed[stage])});
  }
}

void Probes::begin(std::int64_t first_minibatch) {
  first_ = first_minibatch;
  for (Site& site : sites_) {
    site.next = 0;
    for (Placed& placed : site.probes) placed.at->drained();
  }
}

std::vector<ProbeRow> Probes::take() {
  std::vector<ProbeRow> all;
  for (Site& site : sites_)
    std::ranges::move(std::exchange(site.rows, {}), std::back_inserter(all));
  std::ranges::stable_sort(
      all, {}, [](const ProbeRow& row) { return std::tuple(row.minibatch, row.stage, row.probe); });
  return all;
}

std::vector<StageCopy> Probes::take_copies() {
  std::vector<StageCopy> all;
  for (Site& site : sites_)
    std::ranges::move(std::exchange(site.copies, {}), std::back_inserter(all));
  return all;
}

std::vector<Probes::Cost> Probes::costs() const {
  std::vector<Cost> all(probes_.size());
  for (const Site& site : sites_) {
    if (!whole_.empty()) all[as_size(whole_.front())].seconds += site.copying;
    for (const Placed& placed : site.probes) {
      all[as_size(placed.probe)].seconds += placed.cost.seconds;
      all[as_size(placed.probe)].measurements += placed.cost.measurements;
    }
  }
  return all;
}

/// The site of an action, or null if it is not observed.
Probes::Site* Probes::site(const Action& action) {
  return action.replica == 0 ? &sites_[as_size(action.stage)] : nullptr;
}

/// The number in the training of the first mini-batch from `first` to `last` of the schedule that
/// a probe measures; −1: none.
std::int64_t Probes::due(std::int64_t every, int first, int last) const {
  const std::int64_t begin = first_ + first, end = first_ + last;
  const std::int64_t next = (begin + every - 1) / every * every;
  return next <= end ? next : -1;
}

/// Calls `call(placed, measured, finding)` for all probes of the stage. `measured`: the probe
/// measures a mini-batch from `first` to the action's; then results are of that one.
template <class Call>
void Probes::each(const Action& action, int first, const Call& call) {
  Site& at = sites_[as_size(action.stage)];
  for (Placed& placed : at.probes) {
    const std::int64_t measured = due(placed.every, first, action.minibatch);
    const Finding::Take take = [&](std::int64_t minibatch, int stage, std::string_view quantity,
                                   double value) {
      if (std::exchange(placed.last, minibatch) != minibatch) ++placed.cost.measurements;
      if (std::isfinite(value))
        at.rows.push_back({minibatch, stage, placed.probe, std::string(quantity), value});
    };
    const Clock::time_point begin = Clock::now();
    call(placed, measured >= 0,
         Finding(take, measured >= 0 ? measured : first_ + action.minibatch, action.stage));
    placed.cost.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  }
}

/// Calls `call(placed, finding)` for the probes that measure the pass.
template <class Call>
void Probes::each_of_pass(const Action& pass, const Call& call) {
  each(pass, pass.minibatch, [&](Placed& placed, bool measured, const Finding& found) {
    if (measured && (pass.microbatch == 0 || placed.at->all_microbatches())) call(placed, found);
  });
}

void Probes::began(const Instruction& instruction, Stage& stage) {
  Site* const at = site(instruction.action);
  if (at == nullptr) return;
  bool records = false;
  each_of_pass(instruction.action, [&](Placed& placed, const Finding&) {
    placed.at->began(instruction, stage);
    records |= placed.at->wants_gradients();
  });
  if (!records || !adds(instruction.action)) return;
  at->added.assign(stage.layout().entries.size(), {});
  StageProbeAccess(stage).record_gradients(&at->added);
}

void Probes::backward(const Backward& about_to_run) {
  const Action& action = about_to_run.instruction.action;
  if (site(action) == nullptr) return;
  each_of_pass(action, [&](Placed& placed, const Finding&) { placed.at->backward(about_to_run); });
}

void Probes::ended(const Instruction& instruction, Stage& stage, const Weighting& weighting) {
  Site* const at = site(instruction.action);
  if (at == nullptr) return;
  StageProbeAccess(stage).record_gradients(nullptr);
  const StageProbe::Added added{std::exchange(at->added, {}), weighting};
  each_of_pass(instruction.action, [&](Placed& placed, const Finding& found) {
    placed.at->ended(instruction, stage, added, found);
  });
}

void Probes::updates(const Instruction& instruction, Stage& stage) {
  Site* const at = site(instruction.action);
  if (at == nullptr) return;
  each(instruction.action, at->next, [&](Placed& placed, bool measured, const Finding& found) {
    placed.at->updates({instruction, stage, measured}, found);
  });
}

void Probes::updated(const Instruction& instruction, Stage& stage) {
  Site* const at = site(instruction.action);
  if (at == nullptr) return;
  each(instruction.action, at->next, [&](Placed& placed, bool measured, const Finding& found) {
    placed.at->updated({instruction, stage, measured}, found);
  });
  copy(instruction.action, stage);
  at->next = instruction.action.minibatch + 1;
}

/// Copies what the stage holds after an update for the probes of the whole model that are due.
void Probes::copy(const Action& update, Stage& stage) {
  Site& at = sites_[as_size(update.stage)];
  const Clock::time_point begin = Clock::now();
  for (const int probe : whole_) {
    const std::int64_t minibatch =
        due(probes_[as_size(probe)].probe->every(), at.next, update.minibatch);
    if (minibatch < 0 ||
        std::ranges::find(at.copies, minibatch, &StageCopy::minibatch) != at.copies.end())
      continue;
    StageProbeAccess access(stage);
    at.copies.push_back({minibatch, update.stage, access.state(), access.divisors()});
  }
  at.copying += std::chrono::duration<double>(Clock::now() - begin).count();
}

bool Probes::compares(const Action& pass) const {
  return pass.replica == 0 && pass.microbatch == 0 &&
         std::ranges::any_of(probes_, [&](const NamedProbe& each) {
           return each.probe->compares() && (first_ + pass.minibatch) % each.probe->every() == 0;
         });
}

void Probes::compared(const Action& pass, int, const Tensors& sent, const Tensors& arrived) {
  each_of_pass(pass, [&](Placed& placed, const Finding& found) {
    placed.at->compared(pass, sent, arrived, found);
  });
}

}  // namespace pipewright
