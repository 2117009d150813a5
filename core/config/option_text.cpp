// SPDX-License-Identifier: Apache-2.0
#include "core/config/option_text.h"

#include <algorithm>
#include <array>

#include "core/base/wording.h"
#include "core/config/other_words.h"
#include "core/config/plain_scalar.h"

namespace pipewright {
namespace {

using Type = OptionInfo::Type;

bool is_numeric(Type type) {
  return type == Type::Integer || type == Type::Number;
}

std::string with_range(std::string_view noun, const OptionInfo& info) {
  const std::string range = range_text(info);
  if (range.empty()) return std::string(noun);
  return concat(noun, info.least && info.most ? " " : " of ", range);
}

/// The value that a quoted text would have without its quotes; Null if it would have none.
Value unquoted(const Value& given) {
  if (!given.is(Value::Kind::Text)) return {};
  const PlainScalar scalar = read_plain_scalar(given.text);
  return scalar.refusal.empty() ? scalar.value : Value();
}

bool would_fit(const OptionInfo& info, const Value& value) {
  switch (info.type) {
    case Type::Flag: return value.is(Value::Kind::Flag);
    case Type::Integer: return exact_integer(value).has_value();
    case Type::Number: return value.is(Value::Kind::Integer) || value.is(Value::Kind::Number);
    case Type::Choice: return std::ranges::count(info.choices, value) > 0;
    default: return false;
  }
}

/// The hint for a number that was written with commas: "0,1" or "1,000,000".
std::string without_commas(const std::string& text) {
  const std::vector<std::string> parts = split(text, ',');
  const auto digits = [](const std::string& part) {
    return !part.empty() && std::ranges::all_of(part, is_digit);
  };
  const std::string first = parts[0].starts_with('-') ? parts[0].substr(1) : parts[0];
  if (parts.size() < 2 || !digits(first) || !std::all_of(parts.begin() + 1, parts.end(), digits))
    return {};
  const bool groups = first != "0" && std::all_of(parts.begin() + 1, parts.end(),
                                                  [](const auto& p) { return p.size() == 3; });
  if (groups) return concat("; write ", join(parts, ""), ", without commas");
  return parts.size() == 2 ? concat("; write ", join(parts, "."), ", with a point") : std::string();
}

/// "epochs: 3" for the text "epochs:3", which YAML takes for one word; "" for another value.
std::string spaced_pair(const Value& given) {
  if (!given.is(Value::Kind::Text)) return {};
  const std::string word = given.text.substr(0, given.text.find(' '));
  const std::size_t colon = word.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == word.size()) return {};
  return concat(word.substr(0, colon), ": ", word.substr(colon + 1));
}

/// Sections whose `name` chooses what they describe, by the last part of their path.
constexpr std::array kNamed{"dataset",  "model",       "scheme",      "optimizer",
                            "loss",     "lr_schedule", "compression", "gradient_compression",
                            "backward", "probes",      "devices",     "gradient_rules"};

bool has_name(const std::string& section) {
  const std::string last = split(section, '.').back();
  return std::ranges::count(kNamed, last.substr(0, last.find('['))) > 0;
}

/// What a word in the place of a section's options may mean.
std::string section_advice(const OptionInfo& info, const Value& given) {
  if (has_name(info.name)) return concat("; write {name: ", typed(given), "} if that is its name");
  // The only section that people switch off with a word.
  if (info.name == "train.checkpoint") return "; write {every: 0} for none within an epoch";
  return {};
}

}  // namespace

std::string range_text(const OptionInfo& info) {
  if (info.least && info.most)
    return concat("from ", grouped_text(*info.least), " to ", grouped_text(*info.most));
  if (info.least) return concat("at least ", grouped_text(*info.least));
  if (info.most) return concat("at most ", grouped_text(*info.most));
  return {};
}

std::string typed(const Value& value) {
  std::string text = to_yaml(value);
  if (text.ends_with('\n')) text.pop_back();
  return text.find('\n') == std::string::npos ? text : to_json(value);
}

std::string listed(const std::vector<Value>& choices) {
  std::string out;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) out += i + 1 == choices.size() ? " or " : ", ";
    out += typed(choices[i]);
  }
  return out;
}

std::string expected(const OptionInfo& info) {
  switch (info.type) {
    case Type::Flag: return "true or false";
    case Type::Integer: return with_range("a whole number", info);
    case Type::Number: return with_range("a number", info);
    case Type::Text: return "a text";
    case Type::Path: return "the path of a file or folder";
    case Type::Choice: return listed(info.choices);
    case Type::List:
      if (!is_numeric(info.element)) return "a list";
      return with_range(
          info.element == Type::Integer ? "a list of whole numbers" : "a list of numbers", info);
    case Type::Any: return "any value";
    case Type::Section: return "a mapping of options";
  }
  return {};
}

std::string advice(const OptionInfo& info, const Value& given) {
  const bool text = given.is(Value::Kind::Text);
  const bool scalar = text || given.is(Value::Kind::Flag) || given.is(Value::Kind::Integer) ||
                      given.is(Value::Kind::Number);
  if (would_fit(info, unquoted(given))) return "; remove the quotes";
  if (info.type == Type::Choice && text) {
    std::vector<std::string> names;
    for (const Value& choice : info.choices) names.push_back(choice.text);
    if (const std::string ours = our_word(given.text, names); !ours.empty())
      return concat("; did you mean '", ours, "'?");
    if (const std::string meant = did_you_mean(given.text, names); !meant.empty()) return meant;
  }
  if ((info.type == Type::Text || info.type == Type::Path) && scalar)
    return concat("; write \"", given.text, "\" in quotes");
  if (info.type == Type::List && is_numeric(info.element) && scalar && !text)
    return concat("; write [", given.text, "]");
  if (is_numeric(info.type) && text && !given.text.empty()) return without_commas(given.text);
  if (const std::string pair = spaced_pair(given); info.type == Type::Section && !pair.empty())
    return concat("; write '", pair, "', with a space after ':'");
  if (info.type == Type::Section && text && !given.text.empty()) return section_advice(info, given);
  return {};
}

std::string meaning_of_key(const std::string& key, const std::vector<std::string>& known) {
  const std::size_t colon = key.find(':');
  if (colon != std::string::npos && std::ranges::count(known, key.substr(0, colon)) > 0)
    return concat("; write '", key.substr(0, colon), ": …', with a space after ':'");
  const std::size_t dot = key.find('.');
  if (dot != std::string::npos && std::ranges::count(known, key.substr(0, dot)) > 0)
    return concat("; write '", key.substr(0, dot), ": {", key.substr(dot + 1),
                  ": …}', dotted keys are for profiles, sweep, table and --set");
  if (const std::string ours = our_word(key, known); !ours.empty())
    return concat("; did you mean '", ours, "'?");
  return rule_for_word(key);
}

std::string section_of_key(const std::string& key, const std::vector<OptionInfo>& declared) {
  std::vector<std::string> found;
  for (const OptionInfo& section : declared) {
    std::vector<std::string> names;
    for (const OptionInfo& option : section.section) names.push_back(option.name);
    const std::string ours = std::ranges::count(names, key) > 0 ? key : our_word(key, names);
    if (!ours.empty()) found.push_back(concat("'", section.name, ".", ours, "'"));
  }
  if (found.empty() || found.size() > 3) return {};
  return concat("; did you mean ", join(found, " or "), "?");
}

}  // namespace pipewright
