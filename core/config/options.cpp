// SPDX-License-Identifier: Apache-2.0
#include "core/config/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "core/base/utf8.h"
#include "core/base/wording.h"
#include "core/config/experiment_keys.h"
#include "core/config/option_text.h"
#include "core/config/other_words.h"
#include "core/config/plain_scalar.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

using Type = OptionInfo::Type;

OptionInfo described(const std::string& name, Type type, const std::string& help, Value fallback,
                     Range range = {}) {
  OptionInfo info;
  info.name = name;
  info.type = type;
  info.help = help;
  info.fallback = std::move(fallback);
  if (std::isfinite(range.least)) info.least = range.least;
  if (std::isfinite(range.most)) info.most = range.most;
  return info;
}

template <class Element>
Value list_of(const std::vector<Element>& elements) {
  Value list = Value::sequence();
  for (const Element& element : elements) list.items.push_back(Value::of(element));
  return list;
}

std::optional<double> to_number(const Value& value) {
  if (value.is(Value::Kind::Integer)) return static_cast<double>(value.integer);
  if (value.is(Value::Kind::Number)) return value.number;
  return std::nullopt;
}

std::optional<std::int64_t> to_integer(const Value& value) {
  return exact_integer(value);
}

std::optional<std::string> to_text(const Value& value) {
  if (!value.is(Value::Kind::Text)) return std::nullopt;
  return value.text;
}

template <class Number>
bool in_range(const OptionInfo& info, Number number) {
  const auto value = static_cast<double>(number);
  return value >= info.least.value_or(value) && value <= info.most.value_or(value);
}

/// The beginning of the message about an option with a value that is refused.
std::string refusal(const std::string& full_name, const OptionInfo& info, const Value& value) {
  return concat(full_name, " is ", value.shown(), "; expected ", expected(info));
}

/// The folder that relative paths in a value with this place start from.
std::filesystem::path folder_of(const Place& place) {
  if (place.file.starts_with("--")) return ".";
  const std::filesystem::path folder = std::filesystem::path(place.file).parent_path();
  return folder.empty() ? "." : folder;
}

/// Whether `name` chooses the part that the options belong to, but no such part is known. Then its
/// options are unknown, too.
bool of_unknown_part(const Value& mapping, const std::vector<OptionInfo>& declared) {
  const auto name = std::ranges::find(declared, "name", &OptionInfo::name);
  const Value* given = mapping.find("name");
  return given != nullptr && name != declared.end() && name->type == Type::Choice &&
         std::ranges::count(name->choices, *given) == 0;
}

/// The names that a mapping with these options may have. Those of a whole experiment have more keys
/// than options: other readers take `extends`, `sweep` and the like.
std::vector<std::string> known_names(const std::vector<OptionInfo>& declared, bool whole) {
  std::vector<std::string> names;
  for (const OptionInfo& info : declared) names.push_back(info.name);
  if (whole && !names.empty() && std::ranges::all_of(names, find_experiment_key))
    for (const ExperimentKey& key : experiment_keys())
      if (key.use != KeyUse::Option) names.push_back(key.name);
  return names;
}

/// Whether a message continues a sentence that begins with the option's name.
bool is_predicate(std::string_view message) {
  return std::ranges::any_of(std::array{"is ", "has ", "needs ", "must ", "names ", "and "},
                             [&](const char* verb) { return message.starts_with(verb); });
}

}  // namespace

Options::Options(const Value* mapping, std::string path, Problems& problems)
    : mapping_(mapping), path_(std::move(path)), problems_(&problems) {
  if (mapping_ == nullptr) return;
  place_ = mapping_->place;
  if (mapping_->is(Value::Kind::Mapping)) return;
  if (!mapping_->is(Value::Kind::Null)) {
    OptionInfo info;
    info.name = path_;
    info.type = Type::Section;
    problems_->add(place_, concat(path_.empty() ? "the document" : path_, " is ", mapping_->shown(),
                                  "; expected ", expected(info), advice(info, *mapping_)));
  }
  mapping_ = nullptr;
}

Options::Options(Options& parent, const std::string& name, const Value* mapping)
    : Options(mapping, parent.full_name(name), *parent.problems_) {
  parent_ = &parent;
  if (mapping == nullptr) place_ = parent.place_;
}

bool Options::flag(const std::string& name, bool fallback, const std::string& help) {
  const auto convert = [](const Value& value) -> std::optional<bool> {
    if (!value.is(Value::Kind::Flag)) return std::nullopt;
    return value.flag;
  };
  const bool result =
      read(described(name, Type::Flag, help, Value::of(fallback)), convert).value_or(fallback);
  accept(name, Value::of(result));
  return result;
}

std::int64_t Options::integer(const std::string& name, std::int64_t fallback,
                              const std::string& help, Range range) {
  const OptionInfo info = described(name, Type::Integer, help, Value::of(fallback), range);
  const std::int64_t result = read(info, to_integer).value_or(fallback);
  accept(name, Value::of(result));
  return result;
}

double Options::number(const std::string& name, double fallback, const std::string& help,
                       Range range) {
  const OptionInfo info = described(name, Type::Number, help, Value::of(fallback), range);
  const double result = read(info, to_number).value_or(fallback);
  accept(name, Value::of(result));
  return result;
}

std::string Options::text(const std::string& name, const std::string& fallback,
                          const std::string& help) {
  const OptionInfo info = described(name, Type::Text, help, Value::of(fallback));
  const std::string result = read(info, to_text).value_or(fallback);
  accept(name, Value::of(result));
  return result;
}

std::string Options::choice(const std::string& name, const std::vector<std::string>& choices,
                            const std::string& fallback, const std::string& help) {
  OptionInfo info = described(name, Type::Choice, help, Value::of(fallback));
  for (const std::string& choice : choices) info.choices.push_back(Value::of(choice));
  const auto convert = [&](const Value& value) {
    return std::ranges::count(info.choices, value) > 0 ? to_text(value) : std::nullopt;
  };
  const std::string result = read(info, convert).value_or(fallback);
  accept(name, Value::of(result));
  return result;
}

std::string Options::part(const std::string& name, const std::vector<std::string>& parts,
                          const std::string& fallback, const std::string& help,
                          std::string (*explain)(std::string_view)) {
  const Value* const value = find(name);
  const bool unknown = value != nullptr && value->is(Value::Kind::Text) &&
                       std::ranges::count(parts, value->text) == 0;
  const std::string known = unknown && explain != nullptr ? explain(value->text) : std::string();
  const std::string hint = !known.empty() ? concat("; ", known)
                           : unknown && our_word(value->text, parts).empty()
                               ? plugin_hint(value->text, parts)
                               : std::string();
  if (hint.empty()) return choice(name, parts, fallback, help);
  OptionInfo info = described(name, Type::Choice, help, Value::of(fallback));
  for (const std::string& each : parts) info.choices.push_back(Value::of(each));
  refuse(declare(std::move(info)), *value, hint);
  accept(name, Value::of(fallback));
  return fallback;
}

int Options::choice(const std::string& name, std::initializer_list<int> choices, int fallback,
                    const std::string& help) {
  OptionInfo info = described(name, Type::Choice, help, Value::of(fallback));
  for (const int choice : choices) info.choices.push_back(Value::of(choice));
  const auto convert = [&](const Value& value) -> std::optional<int> {
    const auto integer = exact_integer(value);
    const bool known = integer && std::ranges::count(info.choices, Value::of(*integer)) > 0;
    return known ? std::optional<int>(static_cast<int>(*integer)) : std::nullopt;
  };
  const int result = read(info, convert).value_or(fallback);
  accept(name, Value::of(result));
  return result;
}

std::vector<std::int64_t> Options::integers(const std::string& name,
                                            const std::vector<std::int64_t>& fallback,
                                            const std::string& help, Range range) {
  OptionInfo info = described(name, Type::List, help, list_of(fallback), range);
  info.element = Type::Integer;
  const std::vector<std::int64_t> result = read_list(info, to_integer).value_or(fallback);
  accept(name, list_of(result));
  return result;
}

std::vector<double> Options::numbers(const std::string& name, const std::vector<double>& fallback,
                                     const std::string& help, Range range) {
  OptionInfo info = described(name, Type::List, help, list_of(fallback), range);
  info.element = Type::Number;
  const std::vector<double> result = read_list(info, to_number).value_or(fallback);
  accept(name, list_of(result));
  return result;
}

std::filesystem::path Options::path(const std::string& name, const std::string& fallback,
                                    const std::string& help) {
  return read_path(described(name, Type::Path, help, Value::of(fallback)));
}

std::filesystem::path Options::required_path(const std::string& name, const std::string& help) {
  OptionInfo info = described(name, Type::Path, help, Value());
  info.required = true;
  const std::filesystem::path result = read_path(info);
  if (!given(name))
    problems_->add(place_, concat(full_name(name), " is missing; expected ", expected(info)));
  else if (find(name)->is(Value::Kind::Text) && find(name)->text.empty())
    problem(name, "is empty; expected the path of a file or folder");
  return result;
}

std::filesystem::path Options::read_path(const OptionInfo& info) {
  const std::optional<std::string> given_text = read(info, to_text);
  const std::string text = given_text.value_or(info.fallback.text);
  constexpr std::size_t kLongestPath = 4095;  // bytes; the limit of Linux
  if (text.size() > kLongestPath) {
    problem(info.name,
            concat("has ", counted(text.size(), "byte"), "; a path has at most ", kLongestPath));
    return {};
  }
  const std::filesystem::path folder = given_text ? folder_of(where(info.name)) : ".";
  std::filesystem::path result;
  try {
    if (!text.empty()) result = resolved_path(text, folder);
  } catch (const Error& error) {
    problem(info.name, concat("is '", text, "': ", error.what()));
  }
  if (valid_utf8(result.native()) < result.native().size()) {  // records could not hold it
    problem(info.name, concat("is ", result.string(), ", which is not UTF-8"));
    return {};
  }
  accept(info.name, Value::of(result.string()));
  return result;
}

Value Options::any(const std::string& name, const Value& fallback, const std::string& help) {
  declare(described(name, Type::Any, help, fallback));
  const Value* value = find(name);
  Value result = value == nullptr ? fallback : *value;
  resolved_.at_or_add(name) = result;
  return result;
}

std::string Options::required_text(const std::string& name, const std::string& help) {
  OptionInfo info = described(name, Type::Text, help, Value());
  info.required = true;
  const std::string result = read(info, to_text).value_or("");
  if (!given(name))
    problems_->add(place_, concat(full_name(name), " is missing; expected ", expected(info)));
  accept(name, Value::of(result));
  return result;
}

Options Options::section(const std::string& name, const std::string& help) {
  declare(described(name, Type::Section, help, Value()));
  accept(name, Value::mapping());
  return Options(*this, name, find(name));
}

std::vector<Options> Options::sections(const std::string& name, const std::string& help) {
  declare(described(name, Type::Any, help, Value::sequence()));
  Value& resolved = resolved_.at_or_add(name) = Value::sequence();
  const Value* const given = find(name);
  if (given == nullptr) return {};
  if (!given->is(Value::Kind::Sequence)) {
    problem(name, concat("is ", given->shown(), "; expected a list of mappings, [{…}, …]"));
    return {};
  }
  std::vector<Options> all;
  for (std::size_t i = 0; i < given->items.size(); ++i) {
    resolved.items.push_back(Value::mapping());
    Options options(*this, concat(name, "[", i, "]"), &given->items[i]);  // reports what is none
    if (given->items[i].is(Value::Kind::Mapping)) all.push_back(std::move(options));
    if (given->items[i].is(Value::Kind::Null))
      problem(concat(name, "[", i, "]"), "is empty; expected a mapping, {name: …}");
  }
  return all;
}

bool Options::given(const std::string& name) const {
  return find(name) != nullptr;
}

Place Options::where(const std::string& name) const {
  const std::size_t bracket = name.find('[');
  const Value* value = find(name.substr(0, bracket));
  if (value == nullptr) return place_;
  std::size_t index = 0;
  if (bracket != std::string::npos)
    std::from_chars(name.data() + bracket + 1, name.data() + name.size(), index);
  const bool item = bracket != std::string::npos && index < value->items.size();
  return item ? value->items[index].place : value->place;
}

void Options::problem(const std::string& name, const std::string& message) {
  const Value* const value = find(name);
  const auto info = std::ranges::find(declared_, name, &OptionInfo::name);
  const bool known = value != nullptr && info != declared_.end();
  const std::string refused = known ? refusal(full_name(name), *info, *value) : std::string();
  const auto is_refusal = [&](const Error& error) { return error.message().starts_with(refused); };
  // The value is refused already, and what is judged here is the fallback that took its place.
  if (known && std::ranges::any_of(problems_->errors(), is_refusal)) return;
  const std::string_view link = is_predicate(message) ? " " : ": ";
  problems_->add(where(name), concat(full_name(name), link, message));
}

void Options::problem_at(const Place& place, const std::string& message) {
  problems_->add(place, message);
}

void Options::add(const Problems& others) {
  problems_->add(others);
}

void Options::finish(std::string (*owners)(const std::string&)) {
  constexpr std::size_t kMostAdvised = 10;  // of a section; more would only repeat the known names
  const bool whole = parent_ == nullptr && path_.empty();
  const std::vector<std::string> known = known_names(declared_, whole);
  std::size_t unknown = 0;
  if (mapping_ != nullptr && !of_unknown_part(*mapping_, declared_)) {
    for (const auto& [key, value] : mapping_->fields) {
      if (std::ranges::count(known, key) > 0) continue;
      UnknownKey found{value.key_place(), key, full_name(key), meaning_of_key(key, known), {}};
      if (owners != nullptr) found.guess = owners(key);
      if (found.guess.empty() && ++unknown <= kMostAdvised)
        found.guess = known.empty() ? "; there are none here" : suggestion(key, known);
      unknown_.push_back(std::move(found));
    }
  }
  if (parent_ != nullptr) {  // the root knows whether another section has such an option
    std::ranges::move(unknown_, std::back_inserter(parent_->unknown_));
    return add_to_parent();
  }
  for (const UnknownKey& each : unknown_) {
    std::string hint = each.meaning;
    if (hint.empty() && path_.empty()) hint = section_of_key(each.key, declared_);
    problems_->add(each.place,
                   concat("unknown option '", each.name, "'", hint.empty() ? each.guess : hint));
  }
}

void Options::add_to_parent() {
  const std::string name = path_.substr(parent_->path_.empty() ? 0 : parent_->path_.size() + 1);
  if (const std::size_t bracket = name.find('['); bracket != std::string::npos) {  // of sections()
    const std::size_t index = std::stoul(name.substr(bracket + 1));
    parent_->resolved_.at_or_add(name.substr(0, bracket)).items[index].fields = resolved_.fields;
    return;
  }
  const auto info = std::ranges::find(parent_->declared_, name, &OptionInfo::name);
  info->section = declared_;
  Value& place = parent_->resolved_.at_or_add(name);
  place.fields = resolved_.fields;
}

std::string Options::full_name(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

const OptionInfo& Options::declare(OptionInfo info) {
  const auto known = std::ranges::find(declared_, info.name, &OptionInfo::name);
  if (known != declared_.end()) return *known = std::move(info);
  return declared_.emplace_back(std::move(info));
}

const Value* Options::find(const std::string& name) const {
  const Value* value = mapping_ == nullptr ? nullptr : mapping_->find(name);
  return value != nullptr && value->refused ? nullptr : value;
}

void Options::accept(const std::string& name, Value value) {
  value.place = where(name);
  resolved_.at_or_add(name) = std::move(value);
}

void Options::refuse(const OptionInfo& info, const Value& value, const std::string& hint) {
  problems_->add(value.place,
                 concat(refusal(full_name(info.name), info, value), advice(info, value), hint));
}

/// Converts the given value; nullopt when none is given, or when it is wrong, which is recorded.
template <class Read>
auto Options::read(OptionInfo info, const Read& convert) -> decltype(convert(Value())) {
  const OptionInfo& declared = declare(std::move(info));
  const Value* value = find(declared.name);
  if (value == nullptr) return std::nullopt;
  auto result = convert(*value);
  if (!result) refuse(declared, *value);
  if constexpr (std::is_arithmetic_v<typename decltype(result)::value_type>) {
    if (result && !in_range(declared, *result)) {
      refuse(declared, *value);
      return std::nullopt;
    }
  }
  return result;
}

template <class Read>
auto Options::read_list(OptionInfo info, const Read& convert)
    -> std::optional<std::vector<typename decltype(convert(Value()))::value_type>> {
  const OptionInfo& declared = declare(info);
  const Value* value = find(declared.name);
  if (value == nullptr) return std::nullopt;
  if (!value->is(Value::Kind::Sequence)) {
    refuse(declared, *value);
    return std::nullopt;
  }
  info.type = info.element;  // messages are about one element
  std::vector<typename decltype(convert(Value()))::value_type> result;
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const auto element = convert(value->items[i]);
    const bool fits = element && in_range(info, *element);
    if (fits) result.push_back(*element);
    info.name = concat(declared.name, "[", i, "]");
    if (!fits) refuse(info, value->items[i]);
  }
  if (result.size() != value->items.size()) return std::nullopt;
  return result;
}

}  // namespace pipewright
