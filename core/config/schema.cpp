// SPDX-License-Identifier: Apache-2.0
#include "core/config/schema.h"

#include <cmath>

namespace pipewright {
namespace {

using Type = OptionInfo::Type;

void add(Value& mapping, const std::string& key, Value value) {
  mapping.at_or_add(key) = std::move(value);
}

/// A bound as a value. Whole bounds become integers: "minimum": 1.
Value bound(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? Value::of(static_cast<std::int64_t>(value)) : Value::of(value);
}

void add_number(Value& schema, Type type, const OptionInfo& info) {
  add(schema, "type", Value::of(type == Type::Integer ? "integer" : "number"));
  if (info.least) add(schema, "minimum", bound(*info.least));
  if (info.most) add(schema, "maximum", bound(*info.most));
}

void add_type(Value& schema, const OptionInfo& info) {
  switch (info.type) {
    case Type::Flag: add(schema, "type", Value::of("boolean")); break;
    case Type::Integer:
    case Type::Number: add_number(schema, info.type, info); break;
    case Type::Text:
    case Type::Path: add(schema, "type", Value::of("string")); break;
    case Type::Choice: add(schema, "enum", Value::sequence(info.choices)); break;
    case Type::List:
      add(schema, "type", Value::of("array"));
      if (info.element == Type::Integer || info.element == Type::Number) {
        Value items = Value::mapping();
        add_number(items, info.element, info);
        add(schema, "items", std::move(items));
      }
      break;
    case Type::Section: schema = json_schema(info.section); break;
    case Type::Any: break;
  }
}

Value schema_of(const OptionInfo& info) {
  Value schema = Value::mapping();
  add_type(schema, info);
  if (!info.help.empty()) add(schema, "description", Value::of(info.help));
  if (!info.required && info.type != Type::Section) add(schema, "default", info.fallback);
  return schema;
}

}  // namespace

Value json_schema(const std::vector<OptionInfo>& options) {
  Value properties = Value::mapping();
  Value required = Value::sequence();
  for (const OptionInfo& info : options) {
    add(properties, info.name, schema_of(info));
    if (info.required) required.items.push_back(Value::of(info.name));
  }
  Value schema = Value::mapping();
  add(schema, "type", Value::of("object"));
  add(schema, "properties", std::move(properties));
  if (!required.items.empty()) add(schema, "required", std::move(required));
  add(schema, "additionalProperties", Value::of(false));
  return schema;
}

}  // namespace pipewright
