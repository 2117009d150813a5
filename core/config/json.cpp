// SPDX-License-Identifier: Apache-2.0
#include "core/config/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/base/random.h"
#include "core/base/text.h"
#include "core/config/double_quoted.h"

namespace pipewright {
namespace {

/// Escapes what YAML readers disagree about, too, because our YAML reader reads this JSON. The
/// spelling must stay, as that of numbers below.
void write_text(const std::string& text, std::string& out) {
  out += double_quoted(text);
}

/// Writes a number as all our files have it: 1e+05, where nlohmann-json would write 100000.0. The
/// spelling must stay, because digests are made of it and name folders and checkpoints. 1.0 keeps
/// its point, so that reading the text back gives an equal value.
void write_number(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  const std::string text = number_text(number);
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

void write(const Value& value, bool sorted, std::string& out);

void write_sequence(const Value& value, bool sorted, std::string& out) {
  out += '[';
  for (const Value& item : value.items) {
    if (&item != value.items.data()) out += ',';
    write(item, sorted, out);
  }
  out += ']';
}

void write_mapping(const Value& value, bool sorted, std::string& out) {
  std::vector<const std::pair<std::string, Value>*> fields;
  for (const auto& field : value.fields) fields.push_back(&field);
  if (sorted) std::ranges::sort(fields, {}, [](const auto* field) { return field->first; });
  out += '{';
  for (const auto* field : fields) {
    if (field != fields.front()) out += ',';
    write_text(field->first, out);
    out += ':';
    write(field->second, sorted, out);
  }
  out += '}';
}

void write(const Value& value, bool sorted, std::string& out) {
  switch (value.kind) {
    case Value::Kind::Null: out += "null"; break;
    case Value::Kind::Flag: out += value.flag ? "true" : "false"; break;
    case Value::Kind::Integer: out += std::to_string(value.integer); break;
    case Value::Kind::Number: write_number(value.number, out); break;
    case Value::Kind::Text: write_text(value.text, out); break;
    case Value::Kind::Sequence: write_sequence(value, sorted, out); break;
    case Value::Kind::Mapping: write_mapping(value, sorted, out); break;
  }
}

}  // namespace

std::string to_json(const Value& value) {
  std::string out;
  write(value, false, out);
  return out;
}

std::string plain_text(const Value& value) {
  if (value.is(Value::Kind::Text)) return value.text;
  return value.is(Value::Kind::Number) ? number_text(value.number) : to_json(value);
}

Value mapping_of(std::vector<std::pair<std::string, Value>> fields) {
  Value mapping = Value::mapping();
  mapping.fields = std::move(fields);
  return mapping;
}

std::string digest(const Value& value) {
  std::string canonical;
  write(value, true, canonical);
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(stable_hash(canonical)));
  return text.data();
}

}  // namespace pipewright
