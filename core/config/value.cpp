// SPDX-License-Identifier: Apache-2.0
#include "core/config/value.h"

#include <algorithm>

#include "core/base/parsed.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"

namespace pipewright {
namespace {

/// The text in quotes, printable and on one line, cut after some 60 bytes.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const std::size_t end = next_character(text, std::min(kLongest, text.size()));
  return concat("'", printable(text.substr(0, end)), end < text.size() ? "…'" : "'");
}

bool equal_fields(const Value& a, const Value& b) {
  if (a.fields.size() != b.fields.size()) return false;
  for (std::size_t i = 0; i < a.fields.size(); ++i) {
    const auto& [key, value] = a.fields[i];
    const Value* other = b.fields[i].first == key ? &b.fields[i].second : b.find(key);
    if (other == nullptr || !(value == *other)) return false;
  }
  return true;
}

}  // namespace

std::string Place::text() const {
  return line > 0 ? concat(file, ":", line, ":", column) : file;
}

Value Value::of(bool flag) {
  Value value;
  value.kind = Kind::Flag;
  value.flag = flag;
  value.text = flag ? "true" : "false";
  return value;
}

Value Value::of(std::int64_t integer) {
  Value value;
  value.kind = Kind::Integer;
  value.integer = integer;
  value.text = std::to_string(integer);
  return value;
}

Value Value::of(double number) {
  Value value;
  value.kind = Kind::Number;
  value.number = number;
  value.text = number_text(number);
  return value;
}

Value Value::of(std::string text) {
  Value value;
  value.kind = Kind::Text;
  value.text = std::move(text);
  return value;
}

Value Value::sequence(std::vector<Value> items) {
  Value value;
  value.kind = Kind::Sequence;
  value.items = std::move(items);
  return value;
}

Value Value::mapping() {
  Value value;
  value.kind = Kind::Mapping;
  return value;
}

const Value* Value::find(std::string_view key) const {
  const auto found =
      std::ranges::find_if(fields, [key](const auto& field) { return field.first == key; });
  return found == fields.end() ? nullptr : &found->second;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(static_cast<const Value&>(*this).find(key));
}

Value& Value::at_or_add(const std::string& key) {
  PIPEWRIGHT_CHECK(is(Kind::Mapping), "'", key, "' is looked up in ", described());
  if (Value* found = find(key)) return *found;
  return fields.emplace_back(key, Value()).second;
}

const Value* Value::find_path(std::string_view dotted) const {
  const Value* value = this;
  for (const std::string& part : split(dotted, '.')) {
    if (value->is(Kind::Sequence)) {
      const auto index = parsed<std::size_t>(part);
      if (!index || *index >= value->items.size()) return nullptr;
      value = &value->items[*index];
    } else {
      value = value->find(part);
      if (value == nullptr) return nullptr;
    }
  }
  return value;
}

Place Value::key_place() const {
  return key_line > 0 ? Place{place.file, key_line, key_column} : place;
}

std::string Value::described() const {
  switch (kind) {
    case Kind::Null: return "nothing";
    case Kind::Flag: return "the flag " + shown();
    case Kind::Integer: return "the whole number " + shown();
    case Kind::Number: return "the number " + shown();
    case Kind::Text: return "the text " + shown();
    case Kind::Sequence: return "a list";
    case Kind::Mapping: return "a mapping";
  }
  return {};
}

std::string Value::shown() const {
  switch (kind) {
    case Kind::Null: return "empty";
    case Kind::Flag: return flag ? "true" : "false";
    case Kind::Integer: return std::to_string(integer);
    case Kind::Number: return text.empty() ? number_text(number) : text;
    case Kind::Text: return in_quotes(text);
    case Kind::Sequence: return "a list";
    case Kind::Mapping: return "a mapping";
  }
  return {};
}

bool Value::operator==(const Value& other) const {
  if (kind != other.kind) return false;
  switch (kind) {
    case Kind::Null: return true;
    case Kind::Flag: return flag == other.flag;
    case Kind::Integer: return integer == other.integer;
    case Kind::Number: return number == other.number;
    case Kind::Text: return text == other.text;
    case Kind::Sequence: return items == other.items;
    case Kind::Mapping: return equal_fields(*this, other);
  }
  return false;
}

}  // namespace pipewright
