// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/identity.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/utf8.h"

namespace pipewright {
namespace {

constexpr std::array<std::string_view, 14> kLayout{
    "stages",  "replicas", "balance",   "cut",           "placement", "execution",   "threads",
    "timeout", "device",   "recompute", "memory_format", "offload",   "fetch_ahead", "cuda_graphs"};
constexpr std::size_t kShownChanges = 6;  // changes listed
constexpr std::size_t kShownLength = 40;  // bytes shown of a value

bool is_layout(const std::string& option) {
  return std::ranges::count(kLayout, option) != 0;
}

bool keeps_the_bits(const std::string& option) {
  return option == "execution" || option == "recompute" || option == "offload" ||
         option == "fetch_ahead" || option == "cuda_graphs" || option == "cut" ||
         option == "timeout";
}

/// Whether runs that did not have the option yet were trained as with this value.
bool is_as_before(const std::string& option, const Value& value) {
  return option == "memory_format" && value == Value::of("contiguous");
}

void erase(Value& of, const std::string& section, const std::string& option) {
  if (Value* found = of.find(section))
    std::erase_if(found->fields, [&](const auto& field) { return field.first == option; });
}

bool is_zero(const Value& value) {
  return value == Value::of(0) || value == Value::of(0.0);
}

/// Without the section `perturb` if it disturbs nothing: the experiment is then that of a program
/// without the section.
Value without_idle_perturb(Value resolved) {
  const Value* const perturb = resolved.find("perturb");
  const bool idle =
      perturb != nullptr && perturb->is(Value::Kind::Mapping) &&
      std::ranges::all_of(perturb->fields, [](const auto& field) { return is_zero(field.second); });
  if (idle)
    std::erase_if(resolved.fields, [](const auto& field) { return field.first == "perturb"; });
  return resolved;
}

/// Without the options of offloading where nothing is offloaded.
Value without_idle_offload(Value resolved) {
  Value* const pipeline = resolved.find("pipeline");
  const Value* const offload = pipeline == nullptr ? nullptr : pipeline->find("offload");
  if (offload != nullptr && *offload == Value::of("never"))
    std::erase_if(pipeline->fields, [](const auto& field) {
      return field.first == "offload" || field.first == "fetch_ahead";
    });
  return resolved;
}

/// The value at a dotted path, or null.
Value* find_path(Value& of, std::string_view dotted) {
  return const_cast<Value*>(std::as_const(of).find_path(dotted));
}

/// `train.evaluate` where nothing is evaluated within a training.
Value no_evaluations() {
  Value none = Value::mapping();
  none.at_or_add("every") = Value::of(0);
  none.at_or_add("unit") = Value::of("epoch");
  return none;
}

/// Options that change nothing with these values.
struct IdleOption {
  const char* section;  ///< its dotted path; "": the document
  const char* option;
  Value value;
  bool in_profiles =
      false;  ///< the digests of profiles have had this option since the first candidate
};

const std::vector<IdleOption>& idle_options() {
  static const std::vector<IdleOption> all{
      {"", "gradient_rules", Value::sequence()},
      {"dataset", "decimal", Value::of("point")},
      {"dataset", "header", Value::of("auto")},
      {"loss", "average", Value::of("samples")},
      {"lr_schedule", "constant", Value::of(0.5)},
      {"lr_schedule.warmup", "share", Value::of(0.0)},
      {"model", "tie", Value::of("none")},
      {"optimizer", "groups", Value::sequence()},
      {"optimizer", "momentum_by_delay", Value::of("none"), true},
      {"optimizer", "no_decay", Value::sequence()},
      {"pipeline", "cuda_graphs", Value::of(false)},
      {"pipeline", "slices", Value::of(1)},
      {"pipeline.cut", "each", Value::of(false)},
      {"train", "evaluate", no_evaluations()},
      {"train", "numerics", Value::of("repeatable")},
      {"train", "steps", Value::of(0)},
  };
  return all;
}

Value without_options(Value resolved, bool of_a_profile) {
  for (const IdleOption& idle : idle_options()) {
    if (of_a_profile && idle.in_profiles) continue;
    Value* const of = *idle.section == '\0' ? &resolved : find_path(resolved, idle.section);
    if (of != nullptr)
      std::erase_if(of->fields, [&](const auto& field) {
        return field.first == idle.option && field.second == idle.value;
      });
  }
  return resolved;
}

/// Without sections and options that change nothing as they are: the experiment is then that of a
/// program without them.
Value without_idle(Value resolved) {
  resolved = without_options(std::move(resolved), false);
  Value* const separator = find_path(resolved, "dataset.separator");
  if (separator != nullptr && *separator == Value::of("auto"))
    *separator = Value::of("comma");  // the default before tabs were recognised
  return without_idle_perturb(without_idle_offload(without_idle_output(std::move(resolved))));
}

Value without_name(const Value& resolved) {
  Value science = without_idle(resolved);
  std::erase_if(science.fields, [](const auto& field) {
    return field.first == "name" || field.first == "output" || field.first == "probes";
  });
  return science;
}

Value science_of(const Value& resolved, const std::vector<std::string>& paths) {
  Value science = without_name(resolved);
  if (Value* pipeline = science.find("pipeline"))
    std::erase_if(pipeline->fields, [](const auto& field) { return is_layout(field.first); });
  erase(science, "loader", "prefetch");
  erase(science, "train", "epochs");
  erase(science, "train", "steps");
  for (const std::string& path : paths)
    if (Value* value = find_path(science, path); value != nullptr && !value->text.empty())
      *value = Value::of("given");
  return science;
}

std::string shown(const Value* value) {
  if (value == nullptr) return "nothing";
  std::string text = to_json(*value);
  if (text.size() <= kShownLength) return text;
  return text.substr(0, previous_character(text, kShownLength)) + "…";
}

/// Whether both are parts with different names; their options need no comparison then.
bool is_of_another_name(const Value& before, const Value& now) {
  const Value *const old = before.find("name"), *const name = now.find("name");
  return old != nullptr && name != nullptr && *old != *name;
}

void add_changes(const std::string& path, const Value* before, const Value* now,
                 std::vector<std::string>& changes) {
  if (before != nullptr && now != nullptr && *before == *now) return;
  const auto both = [&](Value::Kind kind) {
    return before != nullptr && now != nullptr && before->is(kind) && now->is(kind);
  };
  const auto is_mapping = [](const Value& item) { return item.is(Value::Kind::Mapping); };
  if (both(Value::Kind::Sequence) && before->items.size() == now->items.size() &&
      std::ranges::all_of(now->items, is_mapping)) {
    for (std::size_t i = 0; i < now->items.size(); ++i)
      add_changes(concat(path, ".", i), &before->items[i], &now->items[i], changes);
    return;
  }
  if (!both(Value::Kind::Mapping)) {
    changes.push_back(concat(path, " ", shown(before), " → ", shown(now)));
    return;
  }
  const auto add = [&](const std::string& key) {
    add_changes(path.empty() ? key : concat(path, ".", key), before->find(key), now->find(key),
                changes);
  };
  if (!path.empty() && is_of_another_name(*before, *now)) return add("name");
  for (const auto& [key, value] : now->fields) add(key);
  for (const auto& [key, value] : before->fields)
    if (now->find(key) == nullptr) add(key);
}

}  // namespace

Value without_idle_options(Value resolved) {
  return without_options(std::move(resolved), true);
}

Value without_idle_output(Value resolved) {
  if (Value* const output = resolved.find("output"))
    std::erase_if(output->fields, [](const auto& field) {
      return field.first == "tensorboard" && field.second == Value::of(false);
    });
  return resolved;
}

std::string config_digest(Value resolved) {
  std::erase_if(resolved.fields, [](const auto& field) { return field.first == "name"; });
  return digest(without_idle(std::move(resolved)));
}

std::string digest_without_seed(const Value& resolved) {
  Value science = without_name(resolved);
  erase(science, "train", "seed");
  return digest(science);
}

std::string identity_of(const Value& resolved, const std::vector<std::string>& paths) {
  return digest(science_of(resolved, paths));
}

std::string identity_changes(const Value& before, const Value& now,
                             const std::vector<std::string>& paths) {
  return changes_between(science_of(before, paths), science_of(now, paths));
}

std::vector<std::string> all_changes(const Value& before, const Value& now) {
  std::vector<std::string> changes;
  add_changes("", &before, &now, changes);
  return changes;
}

std::string changes_between(const Value& before, const Value& now) {
  std::vector<std::string> changes = all_changes(before, now);
  const std::size_t all = changes.size();
  if (all > kShownChanges) changes.resize(kShownChanges);
  return concat(join(changes, ", "),
                all > kShownChanges ? concat(" and ", all - kShownChanges, " more") : "");
}

Value layout_of(const Value& resolved) {
  Value layout = Value::mapping();
  if (const Value* pipeline = resolved.find("pipeline"))
    for (const auto& field : pipeline->fields)
      if (is_layout(field.first)) layout.fields.push_back(field);
  return layout;
}

std::string layout_changes(const Value& before, const Value& now) {
  std::vector<std::string> changes;
  for (const auto& [option, value] : now.fields) {
    const Value* const old = before.find(option);
    if (keeps_the_bits(option) || (old != nullptr && *old == value)) continue;
    if (old == nullptr && is_as_before(option, value)) continue;
    changes.push_back(concat("pipeline.", option, " ", old != nullptr ? to_json(*old) : "nothing",
                             " → ", to_json(value)));
  }
  return join(changes, ", ");
}

}  // namespace pipewright
