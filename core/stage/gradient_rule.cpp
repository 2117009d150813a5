// SPDX-License-Identifier: Apache-2.0
#include "core/stage/gradient_rule.h"

#include <algorithm>

#include "core/stage/torch.h"

namespace pipewright {

StageGradientRules::StageGradientRules(std::vector<NamedGradientRule> rules, std::int64_t size,
                                       const at::TensorOptions& options, double peak_lr)
    : peak_lr_(peak_lr) {
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

void StageGradientRules::apply(const FlatLayout& layout, std::vector<at::Tensor>& gradients,
                               const at::Tensor& weights, const at::Tensor& read,
                               std::int64_t updates) const {
  for (const Placed& each : placed_)
    each.named.rule->apply({.layout = layout,
                            .gradients = gradients,
                            .weights = weights,
                            .read = read,
                            .slots = each.slots,
                            .updates = updates,
                            .peak_lr = peak_lr_});
}

void StageGradientRules::stepped(const at::Tensor& before, const at::Tensor& after,
                                 double lr) const {
  for (const Placed& each : placed_)
    if (each.named.rule->follows_steps())
      each.named.rule->stepped({.before = before, .after = after, .slots = each.slots, .lr = lr});
}

std::vector<std::pair<std::string, at::Tensor>> StageGradientRules::slots() const {
  std::vector<std::pair<std::string, at::Tensor>> all;
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
