// SPDX-License-Identifier: Apache-2.0
/// What an unquoted word means. The rules are stricter than those of YAML, so that no value
/// surprises its author. Private to config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/value.h"

namespace pipewright {

/// The value of a plain (unquoted) scalar, without a place, or the reason why it is refused and how
/// it should be written.
struct PlainScalar {
  Value value;
  std::string refusal;  ///< empty when the value is valid
};

PlainScalar read_plain_scalar(const std::string& text);

/// The 64-bit integer that this decimal spelling ("1e3", "2.50e1", "-4") equals exactly, if any.
/// The digits decide, because 4.9999999999999999999 rounds to 5 as a double.
std::optional<std::int64_t> exact_integer(std::string_view spelling);

/// The integer that `value` equals, be it an Integer or a whole Number; nullopt if there is none.
std::optional<std::int64_t> exact_integer(const Value& value);

}  // namespace pipewright
