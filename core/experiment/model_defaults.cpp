// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/model_defaults.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/registry.h"
#include "core/base/text.h"
#include "core/config/options.h"
#include "core/nn/dataset.h"
#include "core/nn/loss.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

constexpr std::array<std::string_view, 7> kFollowing{"classes",    "channels", "size",  "input",
                                                     "vocabulary", "tokens",   "widths"};

/// A part of the document, with all that its constructor has declared; null if its name is unknown.
template <class Part>
struct MadePart {
  MadePart(const Value& document, const std::string& section, const std::string& fallback) {
    const Value* const given = document.find(section);
    const Value* const name = given != nullptr ? given->find("name") : nullptr;
    const std::string& known =
        name != nullptr && name->is(Value::Kind::Text) ? name->text : fallback;
    const auto* const entry = Registry<Part>::instance().find(known);
    if (entry == nullptr) return;
    Options options(given, section, problems);
    part = entry->make(options);
    declared = options.declared();
    resolved = options.resolved();
    resolved.at_or_add("name") = Value::of(known);
  }

  Problems problems;
  std::unique_ptr<Part> part;
  std::vector<OptionInfo> declared;
  Value resolved;
};

Value list_of(const std::vector<std::int64_t>& numbers) {
  Value list = Value::sequence();
  for (const std::int64_t number : numbers) list.items.push_back(Value::of(number));
  return list;
}

std::optional<Value> positive(std::int64_t number) {
  return number > 0 ? std::optional<Value>(Value::of(number)) : std::nullopt;
}

/// The fallback's widths, the first as many as a sample has numbers, the last as many as classes.
std::optional<Value> adapted_widths(Value fallback, const SampleForm& form) {
  std::int64_t elements = 1;
  for (const std::int64_t size : form.shape) elements *= size;
  if (fallback.items.empty()) return {};
  if (!form.shape.empty()) fallback.items.front() = Value::of(elements);
  if (form.classes > 0) fallback.items.back() = Value::of(form.classes);
  return fallback;
}

/// What the data set says of an option.
std::optional<Value> value_of(const OptionInfo& option, const SampleForm& form) {
  const std::vector<std::int64_t>& shape = form.shape;
  const bool image = shape.size() == 3;
  if (option.name == "classes") return positive(form.classes);
  if (option.name == "channels" && image) return positive(shape[0]);
  if (option.name == "size" && image && shape[1] == shape[2]) return positive(shape[1]);
  if (option.name == "input" && !shape.empty()) return list_of(shape);
  if (option.name == "vocabulary") return positive(form.vocabulary);
  if (option.name == "tokens" && (shape.size() == 1 || shape.size() == 2))
    return positive(shape[0]);
  if (option.name == "widths") return adapted_widths(option.fallback, form);
  return {};
}

bool in_range(const OptionInfo& option, const Value& value) {
  if (value.is(Value::Kind::Sequence))
    return std::ranges::all_of(value.items,
                               [&](const Value& item) { return in_range(option, item); });
  const auto number = static_cast<double>(value.integer);
  return number >= option.least.value_or(number) && number <= option.most.value_or(number);
}

/// What the loss of the document compares with.
Task targets_of(const Value& document) {
  const MadePart<Loss> loss(document, "loss", "cross_entropy");
  return loss.part ? loss.part->compares_with() : Task::Classify;
}

}  // namespace

SampleForm KnownForms::of(const Dataset& dataset, const Value& options, Task targets) {
  const std::string key = concat(static_cast<int>(targets), to_json(options));
  const Lock lock(mutex_);
  const auto known = known_.find(key);
  return known != known_.end() ? known->second : known_[key] = dataset.form(targets);
}

void complete_model(Value& document, KnownForms& forms) {
  const Value* const given = document.find("model");
  if (given != nullptr && !given->is(Value::Kind::Mapping) && !given->is(Value::Kind::Null)) return;
  const MadePart<Model> model(document, "model", "mlp");
  std::vector<OptionInfo> open;
  for (const OptionInfo& option : model.declared)
    if (std::ranges::count(kFollowing, option.name) > 0 &&
        (given == nullptr || given->find(option.name) == nullptr))
      open.push_back(option);
  if (open.empty()) return;  // the data set may have to read a file
  const MadePart<Dataset> dataset(document, "dataset", "digits");
  if (!dataset.part || !dataset.problems.empty()) return;
  const SampleForm form = forms.of(*dataset.part, dataset.resolved, targets_of(document));
  const Place place = given != nullptr ? given->place : document.place;
  for (const OptionInfo& option : open) {
    std::optional<Value> value = value_of(option, form);
    if (!value || !in_range(option, *value)) continue;
    Value& section = document.at_or_add("model");
    if (!section.is(Value::Kind::Mapping)) {
      section = Value::mapping();
      section.place = place;
    }
    value->place = place;
    section.at_or_add(option.name) = *std::move(value);
  }
}

}  // namespace pipewright
