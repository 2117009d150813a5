// SPDX-License-Identifier: Apache-2.0
#include "core/optim/optimizer_groups.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using Part = PartState;

std::int64_t size_of(const Part& part) {
  return part.layout.size;
}

OnElements shifted(const OnElements& made, std::int64_t offset) {
  if (!made) return nullptr;
  return
      [&made, offset](std::int64_t begin, std::int64_t end) { made(offset + begin, offset + end); };
}

/// Calls run(part, step) with the step of each parameter.
template <class Run>
void for_each_part(const OptimizerStep& s, const Run& run) {
  for (std::size_t p = 0; p < s.state.parts.size(); ++p) {
    Part& part = s.state.parts[p];
    const auto own = [&](const at::Tensor& flat) {
      return flat.narrow(0, part.offset, size_of(part));
    };
    const at::Tensor weights = own(s.weights);
    at::Tensor next = s.next.is_same(s.weights) ? weights : own(s.next);
    part.state.steps = s.state.steps;
    run(part, OptimizerStep{.layout = part.layout,
                            .gradients = s.gradients.subspan(p, 1),
                            .weights = weights,
                            .next = next,
                            .state = part.state,
                            .lr = s.lr * part.optimizer->lr(),
                            .made = shifted(s.made, part.offset),
                            .loss_scale = s.loss_scale,
                            .staleness = s.staleness});
  }
}

/// Calls run(prediction) with that of one parameter from its state.
template <class Run>
void with_part(const Prediction& p, const Part& part, const OptimizerState& state, const Run& run) {
  const auto own = [&](const at::Tensor& flat) {
    return flat.narrow(0, part.offset, size_of(part));
  };
  const at::Tensor weights = own(p.weights);
  at::Tensor ahead = own(p.ahead);
  const double lr = part.optimizer->lr();
  std::vector<double> rates(p.rates.begin(), p.rates.end());
  for (double& rate : rates) rate *= lr;
  run(Prediction{.weights = weights,
                 .ahead = ahead,
                 .state = state,
                 .rule = p.rule,
                 .steps = p.steps,
                 .lr = p.lr * lr,
                 .made = shifted(p.made, part.offset),
                 .rates = rates});
}

/// The part's state with the steps that the whole has made, as a checkpoint may have set them.
OptimizerState current(const Part& part, const OptimizerState& whole) {
  OptimizerState state = part.state;
  state.steps = whole.steps;
  return state;
}

bool has_slot(const Optimizer& optimizer, bool predicts, const std::string& name) {
  return std::ranges::count(optimizer.slot_names(predicts), name) > 0;
}

}  // namespace

const OptimizerGroup* group_of(std::span<const OptimizerGroup> groups, std::string_view parameter) {
  const auto found = std::ranges::find_if(groups, [&](const OptimizerGroup& group) {
    return std::ranges::any_of(
        group.match, [&](const std::string& glob) { return matches_glob(parameter, glob); });
  });
  return found == groups.end() ? nullptr : &*found;
}

std::vector<OptimizerGroup> members_of(const std::shared_ptr<const Optimizer>& optimizer) {
  const auto groups = optimizer->groups();
  if (groups.empty()) return {{"optimizer", {}, optimizer}};
  return {groups.begin(), groups.end()};
}

/// Slots are tables here: a parameter has those of its own optimizer only.
std::vector<StateTable> OptimizerGroups::tables(bool predicts) const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  };
  for (const OptimizerGroup& group : groups_) {
    for (const std::string& name : group.optimizer->slot_names(predicts)) add(name);
    for (const StateTable& table : group.optimizer->tables(predicts)) add(table.name);
  }
  std::vector<StateTable> all;
  for (const std::string& name : names)
    all.push_back({name,
                   [this, predicts, name](
                       const FlatLayout::Entry& entry) -> std::optional<std::vector<std::int64_t>> {
                     const OptimizerGroup* const group = group_of(groups_, entry.name);
                     if (group == nullptr) return std::nullopt;
                     if (has_slot(*group->optimizer, predicts, name)) return entry.shape;
                     for (const StateTable& table : group->optimizer->tables(predicts))
                       if (table.name == name) return table.shape_for(entry);
                     return std::nullopt;
                   }});
  return all;
}

std::vector<Part> parts_of(const Optimizer& optimizer, const FlatLayout& layout,
                           const OptimizerState& state, bool predicts) {
  const std::vector<StateTable> tables = optimizer.tables(predicts);
  const auto table_of = [&](const std::string& name, std::size_t parameter) {
    const auto found = std::ranges::find(tables, name, &StateTable::name) - tables.begin();
    return state.tables[static_cast<std::size_t>(found)][parameter];
  };
  std::vector<Part> parts;
  for (std::size_t p = 0; p < layout.entries.size(); ++p) {
    const FlatLayout::Entry& entry = layout.entries[p];
    const OptimizerGroup* const group = group_of(optimizer.groups(), entry.name);
    if (group == nullptr)
      throw Error(ErrorKind::Experiment,
                  concat("no group of the optimizer matches the parameter ", entry.name));
    Part& part = parts.emplace_back();
    part.optimizer = group->optimizer.get();
    part.layout = {{entry}, entry.size};
    part.layout.entries[0].offset = 0;
    part.offset = entry.offset;
    for (const std::string& name : part.optimizer->slot_names(predicts))
      part.state.slots.push_back(entry.in_order(table_of(name, p)));
    for (const StateTable& table : part.optimizer->tables(predicts))
      part.state.tables.push_back({table_of(table.name, p)});
    if (state.last_gradient.defined())
      part.state.last_gradient = state.last_gradient.narrow(0, entry.offset, entry.size);
  }
  return parts;
}

std::unique_ptr<Optimizer> OptimizerGroups::of_stage(int delay, int stages) const {
  std::vector<OptimizerGroup> own = groups_;
  bool differs = false;
  for (OptimizerGroup& group : own)
    if (std::shared_ptr<const Optimizer> made = group.optimizer->of_stage(delay, stages)) {
      group.optimizer = std::move(made);
      differs = true;
    }
  return differs ? std::make_unique<OptimizerGroups>(std::move(own)) : nullptr;
}

bool OptimizerGroups::predicts_by(PredictionRule::Kind kind) const {
  return std::ranges::all_of(
      groups_, [&](const OptimizerGroup& group) { return group.optimizer->predicts_by(kind); });
}

std::string OptimizerGroups::remark() const {
  for (const OptimizerGroup& group : groups_)
    if (std::string remark = group.optimizer->remark(); !remark.empty()) return remark;
  return {};
}

void OptimizerGroups::step(const OptimizerStep& s) const {
  for_each_part(s, [](Part& part, const OptimizerStep& step) { part.optimizer->step(step); });
  ++s.state.steps;
}

void OptimizerGroups::predict(const Prediction& p, const FlatRange& range) const {
  for (const Part& part : p.state.parts) {
    const FlatRange own{std::max<std::int64_t>(range.begin - part.offset, 0),
                        std::min(range.end - part.offset, size_of(part))};
    if (own.begin >= own.end) continue;
    with_part(p, part, current(part, p.state),
              [&](const Prediction& one) { part.optimizer->predict(one, own); });
  }
}

void predict_parts(const Prediction& p) {
  for (const Part& part : p.state.parts)
    with_part(p, part, current(part, p.state),
              [&](const Prediction& one) { predict(*part.optimizer, one); });
}

void step_and_predict_parts(const OptimizerStep& s, const Prediction& p) {
  for_each_part(s, [&](Part& part, const OptimizerStep& step) {
    with_part(p, part, part.state,
              [&](const Prediction& one) { step_and_predict(*part.optimizer, step, one); });
  });
  ++s.state.steps;
}

}  // namespace pipewright
