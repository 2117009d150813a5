/// What an unquoted word means: stricter than YAML, so that nobody is surprised. Private to config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/value.h"

namespace pipewright {

/// The value of a plain scalar, without place; or why it is refused, with the spelling meant.
struct PlainScalar {
  Value value;
  std::string refusal;  ///< empty when the value holds
};

PlainScalar read_plain_scalar(const std::string& text);

/// The 64-bit integer that this decimal spelling ("1e3", "2.50e1", "-4") is exactly, if it is one:
/// judged by its digits, since 4.9999999999999999999 is 5 only as a double.
std::optional<std::int64_t> exact_integer(std::string_view spelling);

/// The integer that `value` is, as an Integer or as a Number that is exactly one.
std::optional<std::int64_t> exact_integer(const Value& value);

}  // namespace pipewright
