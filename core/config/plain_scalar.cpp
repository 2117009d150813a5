// SPDX-License-Identifier: Apache-2.0
#include "core/config/plain_scalar.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "core/base/text.h"

namespace pipewright {
namespace {

PlainScalar refused(const std::string& text, std::string_view reason, const std::string& meant) {
  return {{},
          concat("'", text, "' ", reason, "; write ", meant, ", or \"", text,
                 "\" in quotes for the text")};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string without_underscores(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

/// A decimal number as anybody might write it: sign, digits with '_', a point, an exponent.
struct Decimal {
  bool plus = false, minus = false, underscores = false, point = false;
  std::string whole, fraction;  // digits only
  std::string exponent;         // its digits with their sign, without the 'e'

  bool strict() const {
    return !plus && !underscores && !whole.empty() && (whole.size() == 1 || whole[0] != '0') &&
           (!point || !fraction.empty());
  }
  bool integer() const { return !point && exponent.empty(); }
  std::string canonical() const;
};

std::string Decimal::canonical() const {
  const std::size_t first = std::min(whole.find_first_not_of('0'), whole.size());
  std::string out = minus ? "-" : "";
  out += first == whole.size() ? "0" : whole.substr(first);
  if (point) out += "." + (fraction.empty() ? "0" : fraction);
  if (!exponent.empty()) out += "e" + exponent;
  return out;
}

std::string_view taken_digits(std::string_view& rest) {
  const auto end = std::ranges::find_if(rest, [](char c) { return !is_digit(c) && c != '_'; });
  const std::string_view digits(rest.begin(), end);
  rest.remove_prefix(digits.size());
  return digits;
}

std::optional<Decimal> read_decimal(std::string_view rest) {
  Decimal decimal;
  if (rest.starts_with('+')) decimal.plus = true;
  if (rest.starts_with('-')) decimal.minus = true;
  if (decimal.plus || decimal.minus) rest.remove_prefix(1);
  if (rest.starts_with('_')) return std::nullopt;
  const std::string_view whole = taken_digits(rest);
  std::string_view fraction;
  if (rest.starts_with('.')) {
    decimal.point = true;
    rest.remove_prefix(1);
    fraction = taken_digits(rest);
  }
  decimal.whole = without_underscores(whole);
  decimal.fraction = without_underscores(fraction);
  decimal.underscores =
      whole.size() + fraction.size() != decimal.whole.size() + decimal.fraction.size();
  if (decimal.whole.empty() && decimal.fraction.empty()) return std::nullopt;
  if (rest.empty()) return decimal;
  if (rest[0] != 'e' && rest[0] != 'E') return std::nullopt;
  rest.remove_prefix(1);
  decimal.exponent = rest;
  if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  if (rest.empty() || !std::ranges::all_of(rest, is_digit)) return std::nullopt;
  return decimal;
}

/// "0x1F" → "31": the decimal spelling of a number in another base, if it is one.
std::optional<std::string> from_other_base(std::string_view text) {
  const std::string_view sign = text.substr(0, text.starts_with('-') ? 1 : 0);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() < 3 || text[0] != '0') return std::nullopt;
  const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(text[1])));
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (base == 0) return std::nullopt;
  const std::string digits = without_underscores(text.substr(2));
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || read.ptr != end) return std::nullopt;
  if (read.ec != std::errc()) return "it in decimal digits";
  return concat(sign, number);
}

PlainScalar read_number(const std::string& text, const Decimal& decimal) {
  if (!decimal.strict()) {
    const std::string_view reason = decimal.underscores ? "has underscores in a number"
                                    : decimal.plus      ? "has a plus sign"
                                    : decimal.whole.size() > 1 && decimal.whole[0] == '0'
                                        ? "has leading zeros"
                                        : "has no digit on one side of the point";
    return refused(text, reason, decimal.canonical());
  }
  Value value;
  value.text = text;
  const char* end = text.data() + text.size();
  if (decimal.integer()) {
    value.kind = Value::Kind::Integer;
    if (std::from_chars(text.data(), end, value.integer).ec == std::errc()) return {value, {}};
    return {{}, concat("'", text, "' does not fit a whole number of 64 bits")};
  }
  value.kind = Value::Kind::Number;
  if (std::from_chars(text.data(), end, value.number).ec == std::errc()) return {value, {}};
  return {{}, concat("'", text, "' is beyond the range of double precision numbers")};
}

}  // namespace

PlainScalar read_plain_scalar(const std::string& text) {
  if (text == "true" || text == "false") return {Value::of(text == "true"), {}};
  if (text.empty() || text == "null" || text == "~") return {};
  const std::string word = lower(text);
  if (word == "yes" || word == "on" || word == "true")
    return refused(text, "is not how a flag is written", "true");
  if (word == "no" || word == "off" || word == "false")
    return refused(text, "is not how a flag is written", "false");
  if (word == "null") return refused(text, "is not how an empty value is written", "null");
  std::string_view bare = word;
  if (bare.starts_with('-') || bare.starts_with('+')) bare.remove_prefix(1);
  if (bare.starts_with('.')) bare.remove_prefix(1);
  if (bare == "inf" || bare == "nan" || bare == "infinity")
    return refused(text, "is not a finite number", "a finite one");
  if (const auto meant = from_other_base(text))
    return refused(text, "is not a decimal number", *meant);
  if (const auto decimal = read_decimal(text)) return read_number(text, *decimal);
  return {Value::of(text), {}};
}

std::optional<std::int64_t> exact_integer(std::string_view spelling) {
  const auto decimal = read_decimal(spelling);
  if (!decimal) return std::nullopt;
  std::string digits = decimal->whole + decimal->fraction;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return 0;
  std::int64_t scale = 0;  // the value is digits × 10^scale
  std::string_view exponent = decimal->exponent;
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), scale);
  if (!exponent.empty() && (read.ec != std::errc() || std::abs(scale) > 1'000'000'000))
    return std::nullopt;
  scale -= static_cast<std::int64_t>(decimal->fraction.size());
  for (; scale < 0 && digits.ends_with('0'); ++scale) digits.pop_back();
  if (scale < 0 || static_cast<std::int64_t>(digits.size()) + scale > 19) return std::nullopt;
  digits.append(static_cast<std::size_t>(scale), '0');
  if (decimal->minus) digits.insert(0, 1, '-');
  std::int64_t integer = 0;
  const char* end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, integer).ec != std::errc()) return std::nullopt;
  return integer;
}

std::optional<std::int64_t> exact_integer(const Value& value) {
  if (value.is(Value::Kind::Integer)) return value.integer;
  if (!value.is(Value::Kind::Number)) return std::nullopt;
  return exact_integer(value.text.empty() ? number_text(value.number) : value.text);
}

}  // namespace pipewright
