// SPDX-License-Identifier: Apache-2.0
#include "core/cost/stage_memory.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/as_size.h"

namespace pipewright {
namespace {

bool needs_as_much(const StageMoment& a, const StageMoment& b) {
  const auto kind = [](const StageMoment& m) {
    return std::tuple(m.learns, m.bare, m.head, m.of_head, m.added, m.head_added);
  };
  for (std::size_t owner = 0; owner < b.borrowed.size(); ++owner)
    if (b.borrowed[owner] > (owner < a.borrowed.size() ? a.borrowed[owner] : 0)) return false;
  return kind(a) == kind(b) && a.kept >= b.kept && a.inputs >= b.inputs &&
         a.versions >= b.versions && a.halves >= b.halves && a.head_gradients >= b.head_gradients &&
         a.takes_lent >= b.takes_lent;
}

void add_moment(std::vector<StageMoment>& moments, const StageMoment& moment) {
  if (std::ranges::any_of(moments, [&](const auto& other) { return needs_as_much(other, moment); }))
    return;
  std::erase_if(moments, [&](const auto& other) { return needs_as_much(moment, other); });
  moments.push_back(moment);
}

/// Whether a backward of the stage starts from the gradient that its auxiliary head makes.
bool keeps_head_gradient(const Schedule& schedule, int stage) {
  if (!std::ranges::binary_search(schedule.auxiliary, stage)) return false;
  const auto& actions = schedule.workers[as_size(schedule.shape.worker_of(stage, 0))];
  return std::ranges::any_of(actions, [&](const Action& action) {
    return action.stage == stage && starts_at_own_loss(action);
  });
}

/// What a stage holds of weights that it lends or borrows.
struct SharedNow {
  bool takes_lent = false;
  std::vector<int> borrowed;  ///< [owner]
};

SharedNow shared_by(int stage, const BorrowedBytes& held, const std::vector<Loan>& loans) {
  SharedNow now;
  for (std::size_t i = 0; i < loans.size(); ++i) {
    const int count = held.of_loan(i, stage, 0);
    if (count == 0) continue;
    if (loans[i].from == stage) {
      now.takes_lent = true;
      continue;
    }
    now.borrowed.resize(std::max(now.borrowed.size(), as_size(loans[i].from + 1)));
    now.borrowed[as_size(loans[i].from)] = count;
  }
  return now;
}

/// Follows one stage of replica 0 through its worker's actions.
class Walk {
 public:
  Walk(std::vector<StageMoment>& moments, int versions, bool keeps_head_gradient)
      : moments_(moments),
        versions_(versions),
        most_versions_(versions),
        keeps_head_gradient_(keeps_head_gradient) {}

  void action(const Action& action, const ActionWeights& weights, bool recomputed,
              bool last_of_forward, bool first_half, SharedNow shared) {
    shared_ = std::move(shared);
    versions_ += weights.makes ? 1 : 0;
    if (action.kind == ActionKind::Update) {
      versions_ += weights.in_place ? 0 : 1;
      added_ = head_added_ = 0;
    }
    most_versions_ = std::max(most_versions_, versions_);
    const bool bare = recomputed && action.kind == ActionKind::Forward;
    if (action.kind == ActionKind::Forward) ++(bare ? inputs_ : kept_);
    kept_ += facts_of(action.kind).restores;
    inputs_ -= facts_of(action.kind).restores;
    const bool head = action.kind == ActionKind::Head;
    if (head && keeps_head_gradient_) ++head_gradients_;
    if (is_pass(action.kind)) pass(action, bare);
    if (first_half) ++halves_;
    if (action.kind == ActionKind::BackwardWeight) --halves_;
    if (last_of_forward) {
      --kept_;
      if (keeps_head_gradient_) --head_gradients_;
    }
    versions_ -= static_cast<int>(weights.frees.size());
  }

 private:
  void pass(const Action& action, bool bare) {
    const bool head = action.kind == ActionKind::Head;
    add_moment(moments_, {.learns = makes_weight_gradient(action.kind),
                          .bare = bare,
                          .head = head,
                          .of_head = keeps_head_gradient_ && starts_at_own_loss(action),
                          .kept = kept_,
                          .inputs = inputs_,
                          .versions = most_versions_,
                          .halves = halves_,
                          .added = added_,
                          .head_added = head_added_,
                          .head_gradients = head_gradients_,
                          .takes_lent = shared_.takes_lent,
                          .borrowed = shared_.borrowed});
    if (makes_weight_gradient(action.kind)) added_ = std::min(added_ + 1, 2);
    if (head) head_added_ = std::min(head_added_ + 1, 2);
  }

  std::vector<StageMoment>& moments_;
  int kept_ = 0, inputs_ = 0, halves_ = 0, versions_, most_versions_;
  int added_ = 0, head_added_ = 0, head_gradients_ = 0;
  SharedNow shared_;
  bool keeps_head_gradient_;
};

/// Bytes of a sum of so many gradients: of one, or of several.
std::int64_t sum_of(int gradients, std::int64_t one, std::int64_t several) {
  return gradients == 0 ? 0 : gradients == 1 ? one : several;
}

/// The sum of those of layers [begin, end); of none if there is no list.
std::int64_t sum_within(const std::vector<std::int64_t>& of_layers, std::size_t begin,
                        std::size_t end) {
  std::int64_t sum = 0;
  for (std::size_t layer = begin; layer < std::min(end, of_layers.size()); ++layer)
    sum += of_layers[layer];
  return sum;
}

/// Bytes that a pass holds beyond what forwards and heads keep, its layers' gradients included.
std::int64_t passing_bytes(const StageCost& stage, const StageMoment& moment) {
  if (moment.learns && moment.added == 0)
    return stage.peak_bytes + stage.gradient_bytes() - stage.freed_bytes;
  const HeadMemory& head = stage.head_memory;
  const std::int64_t peak = moment.head     ? moment.head_added > 0
                                                  ? std::max(head.peak_bytes, head.peak_adding_bytes)
                                                  : head.peak_bytes
                            : moment.learns ? stage.peak_adding_bytes
                            : moment.bare   ? stage.peak_bare_bytes
                                            : stage.peak_bytes;
  return peak + sum_of(moment.added + (moment.learns ? 1 : 0), stage.gradient_bytes(),
                       stage.gradient_sum_bytes());
}

/// Bytes of a head's gradients. A backward that starts from a kept one needs no other beside it.
std::int64_t head_bytes(const HeadMemory& head, const StageMoment& moment) {
  const int kept = moment.head_gradients - (moment.of_head ? 1 : 0);
  return kept * head.kept_bytes + sum_of(moment.head_added + (moment.head ? 1 : 0),
                                         head.gradient_bytes(), head.parameter_bytes);
}

}  // namespace

std::vector<Loan> SharedWeights::between(int layers, int stages) const {
  const auto earliest = [&](std::size_t layer) {
    return std::max(0, stages - layers + static_cast<int>(layer));
  };
  const auto latest = [&](std::size_t layer) {
    return std::min(static_cast<int>(layer), stages - 1);
  };
  std::set<std::pair<int, int>> pairs;
  for (const Lent& each : lent)
    for (const std::size_t borrower : each.borrowers)
      for (int from = earliest(each.owner); from <= latest(each.owner); ++from)
        for (int to = std::max(from + 1, earliest(borrower)); to <= latest(borrower); ++to)
          pairs.emplace(from, to);
  std::vector<Loan> loans;
  for (const auto& [from, to] : pairs) loans.push_back({.from = from, .to = to, .bytes = 1});
  return loans;
}

std::vector<std::vector<StageMoment>> stage_moments(const ProvedSchedule& proved,
                                                    const std::vector<Loan>& loans) {
  const Schedule& schedule = proved.schedule;
  std::vector<std::vector<StageMoment>> moments(as_size(schedule.shape.stages));
  std::vector<Walk> walks;
  for (std::size_t stage = 0; stage < moments.size(); ++stage)
    walks.emplace_back(moments[stage], 1 + schedule.earlier_of(static_cast<int>(stage)),
                       keeps_head_gradient(schedule, static_cast<int>(stage)));
  const PassSlots& slots = proved.index.slots();
  const auto forward_of = [&](const Action& action) { return slots.forward(action, action.stage); };
  std::vector<std::size_t> last(slots.forwards());  // position of its last pass
  std::vector<bool> recomputed(slots.forwards(), false);
  BorrowedBytes borrowed(proved, loans);
  for (std::size_t w = 0; w < schedule.workers.size(); ++w) {
    const auto& actions = schedule.workers[w];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (is_pass(actions[i].kind)) last[forward_of(actions[i])] = i;
      if (actions[i].kind == ActionKind::Recompute) recomputed[forward_of(actions[i])] = true;
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (action.replica != 0) continue;
      const bool last_of_forward = is_pass(action.kind) && last[forward_of(action)] == i;
      const bool first_half = action.kind == ActionKind::BackwardInput &&
                              proved.index.weight_backward(action) != kNowhere;
      borrowed.begin(action);
      walks[as_size(action.stage)].action(action, proved.versions.workers[w][i],
                                          recomputed[forward_of(action)], last_of_forward,
                                          first_half, shared_by(action.stage, borrowed, loans));
      borrowed.end(action, last_of_forward);
    }
  }
  return moments;
}

StageMemories::StageMemories(const Profile& profile, std::vector<std::vector<StageMoment>> moments,
                             int optimizer_slots, HeldBesides besides)
    : profile_(profile),
      moments_(std::move(moments)),
      slots_(optimizer_slots),
      besides_(std::move(besides)),
      row_begin_(profile.layers.size()) {}

void StageMemories::fill_row(std::size_t begin) const {
  if (row_begin_ == begin) return;
  row_begin_ = begin;
  row_.clear();
  StageCost stage;
  stage.input_bytes = begin == 0 ? profile_.input_bytes : profile_.layers[begin - 1].output_bytes;
  for (std::size_t i = begin; i < profile_.layers.size(); ++i) {
    add_layer(stage, profile_.layers[i]);
    row_.push_back(stage);
  }
}

StageCost StageMemories::cost_of(std::size_t begin, std::size_t end, int stage) const {
  fill_row(begin);
  StageCost cost = cost_of_slice(row_[end - begin - 1], besides_.slices);
  const AuxiliaryHeads& heads = besides_.heads;
  if (std::ranges::binary_search(heads.stages, stage)) add_head(cost, heads.behind[end - 1]);
  return cost;
}

std::int64_t StageMemories::shared_bytes(std::size_t begin, std::size_t end,
                                         const StageMoment& moment, const StageOf& stage_of) const {
  const auto inside = [&](std::size_t layer) { return begin <= layer && layer < end; };
  std::int64_t bytes = 0;
  for (const SharedWeights::Lent& each : besides_.shared.lent) {
    if (inside(each.owner)) {
      std::set<int> borrowers;
      for (const std::size_t layer : each.borrowers)
        if (layer >= end) borrowers.insert(stage_of(layer));
      if (moment.takes_lent) bytes += std::ssize(borrowers) * each.bytes;
    } else if (std::ranges::any_of(each.borrowers, inside)) {
      const auto owner = as_size(stage_of(each.owner));
      if (owner < moment.borrowed.size()) bytes += moment.borrowed[owner] * each.bytes;
    }
  }
  return moment.learns ? bytes + sum_within(besides_.shared.copied, begin, end) : bytes;
}

StageMemory StageMemories::of(std::size_t begin, std::size_t end, int stage) const {
  const int last = static_cast<int>(moments_.size()) - 1;
  return of(begin, end, stage, [&](std::size_t layer) {
    if (layer < begin) return std::max(0, stage - static_cast<int>(begin - layer));
    return std::min(last, stage + 1 + static_cast<int>(layer - end));
  });
}

StageMemory StageMemories::of(std::size_t begin, std::size_t end, int number,
                              const StageOf& stage_of) const {
  const StageCost stage = cost_of(begin, end, number);
  const std::int64_t tables = sum_within(besides_.tables, begin, end);
  StageMemory most;
  for (const StageMoment& moment : moments_[as_size(number)]) {
    const StageMemory memory{
        .weights = moment.versions * stage.version_bytes() + stage.buffer_bytes +
                   shared_bytes(begin, end, moment, stage_of) + besides_.fixed,
        .optimizer = slots_ * stage.parameter_bytes + tables,
        .activations = (moment.kept + moment.inputs) * stage.input_bytes +
                       moment.kept * stage.activation_bytes + moment.halves * stage.half_bytes,
        .passing = passing_bytes(stage, moment) + head_bytes(stage.head_memory, moment)};
    if (memory.total() > most.total()) most = memory;
  }
  return most;
}

std::vector<StageMemory> StageMemories::of_cut(std::span<const std::int64_t> balance) const {
  std::vector<int> stage_of_layer;
  for (std::size_t stage = 0; stage < balance.size(); ++stage)
    stage_of_layer.insert(stage_of_layer.end(), static_cast<std::size_t>(balance[stage]),
                          static_cast<int>(stage));
  std::vector<StageMemory> stages;
  std::size_t begin = 0;
  for (const std::int64_t layers : balance) {
    const std::size_t end = begin + static_cast<std::size_t>(layers);
    stages.push_back(of(begin, end, static_cast<int>(stages.size()),
                        [&](std::size_t layer) { return stage_of_layer[layer]; }));
    begin = end;
  }
  return stages;
}

}  // namespace pipewright
