// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/lent_weights.h"

#include <algorithm>

#include "core/schedule/prove.h"

namespace pipewright {

bool shares_weights(const PipelineShape& shape) {
  return !shape.tied.empty() ||
         std::ranges::any_of(shape.skips, [](const Skip& each) { return each.lent_bytes > 0; });
}

std::vector<Loan> loans_of(const PipelineShape& shape) {
  std::vector<Loan> loans;
  for (const Skip& skip : shape.skips)
    if (skip.lent_bytes > 0) loans.push_back({skip.from, skip.to, skip.lent_bytes, skip.parameter});
  return loans;
}

LentWeights::LentWeights(const Schedule& schedule, const PassIndex& index, const Versions& versions,
                         std::vector<Loan> loans)
    : slots_(index.slots()), loans_(std::move(loans)) {
  for (const Loan& loan : loans_) mark(schedule, index, versions, loan);
}

void LentWeights::mark(const Schedule& schedule, const PassIndex& index, const Versions& versions,
                       Loan loan) {
  std::vector<bool>& takes = takes_[{loan.from, loan.to}];
  std::vector<bool>& gives = gives_[{loan.from, loan.to}];
  takes.assign(slots_.forwards(), false);
  gives.assign(slots_.backwards(), false);
  std::map<int, WeightKey> held;  // [replica]
  struct Last {
    std::size_t given = 0, added = 0;  ///< slots
    ActionPlace giver;
  };
  std::map<std::pair<int, int>, Last> last;  // (replica, mini-batch)
  for_each_action(schedule, [&](ActionPlace place, const Action& action) {
    Last& of_minibatch = last[{action.replica, action.minibatch}];
    if (action.stage == loan.from && makes_weight_gradient(action.kind))
      of_minibatch.added = slots_.backward(action, action.stage);
    if (action.stage != loan.to) return;
    if (action.kind == ActionKind::Forward) {
      Action of_owner = action;
      of_owner.stage = loan.from;
      const WeightKey& key = versions.at(index.forward(of_owner)).key;
      const auto [now, first] = held.try_emplace(action.replica, key);
      takes[slots_.forward(action, action.stage)] = first || now->second != key;
      now->second = key;
    } else if (is_backward(action.kind)) {
      of_minibatch.given = slots_.backward(action, action.stage);
      of_minibatch.giver = place;
    }
  });
  for (const auto& [minibatch, each] : last) {
    if (!schedule.shape.training) continue;
    gives[each.given] = true;
    givers_[{loan.from, loan.to}][each.added] = each.giver;
  }
}

ActionPlace LentWeights::giver(const Action& action, int to) const {
  const auto loan = givers_.find({action.stage, to});
  if (loan == givers_.end() || !makes_weight_gradient(action.kind)) return kNowhere;
  const auto found = loan->second.find(slots_.backward(action, action.stage));
  return found == loan->second.end() ? kNowhere : found->second;
}

BorrowedBytes::BorrowedBytes(const ProvedSchedule& proved)
    : BorrowedBytes(proved, loans_of(proved.schedule.shape)) {}

BorrowedBytes::BorrowedBytes(const ProvedSchedule& proved, std::vector<Loan> loans)
    : slots_(proved.index.slots()),
      lent_(proved.schedule, proved.index, proved.versions, std::move(loans)) {
  for (const TiedCopies& tied : proved.schedule.shape.tied)
    for (const int stage : {tied.first, tied.second}) copies_[stage] += tied.bytes;
}

void BorrowedBytes::hold_late(const Action& action, bool begins) {
  if (!copies_.contains(action.stage)) return;
  const bool adds = action.kind == ActionKind::Reduce || action.kind == ActionKind::Update;
  late_[{action.stage, action.replica}] = !begins                              ? 0
                                          : adds                               ? 2
                                          : makes_weight_gradient(action.kind) ? 1
                                                                               : 0;
}

void BorrowedBytes::begin(const Action& action) {
  hold_late(action, true);
  const bool forward = action.kind == ActionKind::Forward;
  if (!forward && !is_part_of_backward(action.kind)) return;
  for (int i = 0; i < static_cast<int>(lent_.loans().size()); ++i) {
    const Loan& loan = lent_.loans()[as_size(i)];
    if (action.stage == loan.from && !forward) {
      held_[{i, action.stage, action.replica}].sum = lent_.giver(action, loan.to) != kNowhere;
    } else if (action.stage == loan.to) {
      Held& held = held_[{i, action.stage, action.replica}];
      if (is_backward(action.kind)) held.sum = true;
      if (!forward) continue;
      if (lent_.take(action, loan.from)) {
        if (!held.readers.empty() && held.readers.back() == 0) --held.copies;
        held.readers.push_back(0);
        ++held.copies;
      }
      ++held.readers.back();
      held.copy_of[slots_.forward(action, action.stage)] = held.readers.size() - 1;
    }
  }
}

void BorrowedBytes::end(const Action& action, bool last) {
  hold_late(action, false);
  if (!is_pass(action.kind)) return;
  for (int i = 0; i < static_cast<int>(lent_.loans().size()); ++i) {
    const Loan& loan = lent_.loans()[as_size(i)];
    const auto found = held_.find({i, action.stage, action.replica});
    if (found == held_.end()) continue;
    Held& held = found->second;
    if (action.stage == loan.from) held.sum = false;
    if (is_backward(action.kind) && lent_.give(action, loan.from)) held.sum = false;
    const auto read = held.copy_of.find(slots_.forward(action, action.stage));
    if (!last || read == held.copy_of.end()) continue;
    if (--held.readers[read->second] == 0 && read->second + 1 < held.readers.size()) --held.copies;
    held.copy_of.erase(read);
  }
}

std::int64_t BorrowedBytes::of(int stage, int replica) const {
  std::int64_t bytes = 0;
  for (const auto& [key, held] : held_)
    if (std::get<1>(key) == stage && std::get<2>(key) == replica)
      bytes += (held.copies + held.sum) * lent_.loans()[as_size(std::get<0>(key))].bytes;
  const auto late = late_.find({stage, replica});
  return late == late_.end() ? bytes : bytes + late->second * copies_.at(stage);
}

int BorrowedBytes::of_loan(std::size_t loan, int stage, int replica) const {
  const auto found = held_.find({static_cast<int>(loan), stage, replica});
  return found == held_.end() ? 0 : found->second.copies + found->second.sum;
}

std::int64_t BorrowedBytes::all() const {
  std::int64_t bytes = 0;
  for (const auto& [key, held] : held_)
    bytes += (held.copies + held.sum) * lent_.loans()[as_size(std::get<0>(key))].bytes;
  for (const auto& [place, gradients] : late_) bytes += gradients * copies_.at(place.first);
  return bytes;
}

std::int64_t most_borrowed(const ProvedSchedule& proved, int stage) {
  const Schedule& schedule = proved.schedule;
  std::int64_t most = 0;
  if (!shares_weights(schedule.shape)) return most;
  if (schedule.shape.training)
    for (const TiedCopies& tied : schedule.shape.tied)
      for (const int each : {tied.first, tied.second})
        if (each == stage) most += 2 * tied.bytes;
  if (most > 0) return most;
  const auto& actions = schedule.workers[as_size(schedule.shape.worker_of(stage, 0))];
  const auto of_stage = [&](const Action& action) {
    return action.stage == stage && action.replica == 0 && is_pass(action.kind);
  };
  std::map<std::size_t, const Action*> last;  // pass of each forward
  for (const Action& action : actions)
    if (of_stage(action)) last[proved.index.slots().forward(action, stage)] = &action;
  BorrowedBytes held(proved);
  for (const Action& action : actions) {
    if (!of_stage(action)) continue;
    held.begin(action);
    most = std::max(most, held.of(stage, 0));
    held.end(action, last[proved.index.slots().forward(action, stage)] == &action);
  }
  return most;
}

}  // namespace pipewright
