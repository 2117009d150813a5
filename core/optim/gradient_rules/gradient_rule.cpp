// SPDX-License-Identifier: Apache-2.0
#include "core/optim/gradient_rules/gradient_rule.h"

#include <algorithm>

#include "core/tensors/torch.h"

namespace pipewright {

StageGradientRules::StageGradientRules(std::vector<NamedGradientRule> rules, std::int64_t size,
                                       const at::TensorOptions& options) {
  for (NamedGradientRule& rule : rules) {
    Placed& placed = placed_.emplace_back();
    for (std::size_t i = 0; i < rule.rule->slot_names().size(); ++i)
      placed.slots.push_back(at::zeros({size}, options));
    placed.named = std::move(rule);
  }
}

bool StageGradientRules::follow_steps() const {
  return std::ranges::any_of(placed_,
                             [](const Placed& each) { return each.named.rule->follows_steps(); });
}

bool StageGradientRules::correct_steps() const {
  return std::ranges::any_of(placed_,
                             [](const Placed& each) { return each.named.rule->corrects_steps(); });
}

bool StageGradientRules::over_model() const {
  return std::ranges::any_of(placed_,
                             [](const Placed& each) { return each.named.rule->over_model(); });
}

void StageGradientRules::apply(Part part, const RuledGradient& gradient) const {
  const auto model = std::ranges::find_if(
      placed_, [](const Placed& each) { return each.named.rule->over_model(); });
  const bool before = part == Part::BeforeModel;
  for (auto each = before ? placed_.begin() : model; each != (before ? model : placed_.end());
       ++each)
    each->named.rule->apply({.layout = gradient.layout,
                             .gradients = gradient.gradients,
                             .weights = gradient.weights,
                             .read = gradient.read,
                             .slots = each->slots,
                             .updates = gradient.updates,
                             .model_square = gradient.model_square,
                             .peak_lr = gradient.peak_lr});
}

void StageGradientRules::stepped(const WeightStep& step) const {
  for (const Placed& each : placed_)
    if (each.named.rule->follows_steps())
      each.named.rule->stepped({.before = step.before,
                                .after = step.after,
                                .slots = each.slots,
                                .updates = step.updates,
                                .lr = step.lr});
}

NamedTensors StageGradientRules::slots() const {
  NamedTensors all;
  for (const Placed& each : placed_) {
    const std::vector<std::string> names = each.named.rule->slot_names();
    for (std::size_t i = 0; i < names.size(); ++i)
      all.emplace_back(concat(each.named.name, ".", names[i]), each.slots[i]);
  }
  return all;
}

int slots_of(const std::vector<NamedGradientRule>& rules) {
  std::size_t count = 0;
  for (const NamedGradientRule& each : rules) count += each.rule->slot_names().size();
  return static_cast<int>(count);
}

}  // namespace pipewright
