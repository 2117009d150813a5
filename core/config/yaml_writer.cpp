// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/config/double_quoted.h"
#include "core/config/plain_scalar.h"
#include "core/config/value.h"

namespace pipewright {
namespace {

constexpr std::size_t kWidth = 100;

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
}

bool may_begin(char c) {
  return is_letter(c) || is_digit(c) || std::string_view("_./~").find(c) != std::string_view::npos;
}

bool may_follow(char c) {
  return may_begin(c) || std::string_view("-+=()@^$% :").find(c) != std::string_view::npos;
}

/// Whether the character must be escaped within double quotes: quotes, backslashes, control
/// characters, and the line breaks and marks beyond ASCII that YAML readers disagree about.
bool is_special(const Character& character) {
  const char32_t code = character.code;
  return character.length > 0 &&
         (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == '"' || code == '\\' ||
          code == 0x2028 || code == 0x2029 || code == 0xFEFF);
}

/// U+FFFD stands for a byte that is not UTF-8, with which no reader would take the file.
constexpr std::string_view kNoCharacter = "\xEF\xBF\xBD";

std::string escaped(char32_t code) {
  if (code == '"' || code == '\\') return {'\\', static_cast<char>(code)};
  if (code == '\n' || code == '\t') return code == '\n' ? "\\n" : "\\t";
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned>(code) & 0xFFFFU);
  return text.data();
}

bool has_special(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(std::max<std::size_t>(1, first_character(text).length)))
    if (is_special(first_character(text))) return true;
  return false;
}

/// Whether the text needs no quotes: we and all other YAML readers read it back as the same text,
/// even in a flow sequence.
bool is_plain(const std::string& text) {
  if (text.empty() || !may_begin(text[0]) || !std::ranges::all_of(text, may_follow)) return false;
  if (has_special(text) || valid_utf8(text) < text.size()) return false;
  if (text.ends_with(' ') || text.ends_with(':') || text.starts_with("...")) return false;
  if (text.find(": ") != std::string::npos || text.find("  ") != std::string::npos) return false;
  const PlainScalar scalar = read_plain_scalar(text);
  if (!scalar.refusal.empty() || !scalar.value.is(Value::Kind::Text)) return false;
  // Dates and times are texts to us, but not to all readers.
  return !is_digit(text[0]) || std::ranges::any_of(text, is_letter);
}

std::string text_of(const std::string& text) {
  return is_plain(text) ? text : double_quoted(text);
}

/// The number as a person would write it ("0.0005", "1.0e-7"), and so that readers of YAML 1.1 take
/// it for a number.
std::string text_of(double number) {
  if (!std::isfinite(number)) return std::isnan(number) ? ".nan" : number < 0 ? "-.inf" : ".inf";
  const double size = std::abs(number);
  const bool fixed = number == 0 || (size >= 1e-5 && size < 1e7);
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), end.ptr);
  const std::size_t exponent = text.find('e');
  const std::string mantissa = text.substr(0, exponent);
  std::string out = mantissa.find('.') == std::string::npos ? mantissa + ".0" : mantissa;
  if (exponent == std::string::npos) return out;
  std::string digits = text.substr(exponent + 2);
  digits.erase(0, digits.starts_with('0') ? 1 : 0);
  return out + text.substr(exponent, 2) + digits;
}

std::string flow(const Value& value) {
  switch (value.kind) {
    case Value::Kind::Null: return "null";
    case Value::Kind::Flag: return value.flag ? "true" : "false";
    case Value::Kind::Integer: return std::to_string(value.integer);
    case Value::Kind::Number: return text_of(value.number);
    case Value::Kind::Text: return text_of(value.text);
    case Value::Kind::Sequence: break;
    case Value::Kind::Mapping: break;
  }
  std::vector<std::string> parts;
  for (const Value& item : value.items) parts.push_back(flow(item));
  for (const auto& [key, field] : value.fields) parts.push_back(text_of(key) + ": " + flow(field));
  const bool sequence = value.is(Value::Kind::Sequence);
  return (sequence ? "[" : "{") + join(parts, ", ") + (sequence ? "]" : "}");
}

bool is_scalar(const Value& value) {
  return value.items.empty() && value.fields.empty();
}

/// Whether the value is written in one line: a scalar, or a short list without mappings.
bool fits_in_line(const Value& value, std::size_t column) {
  if (is_scalar(value)) return true;
  if (value.is(Value::Kind::Mapping)) return false;
  const bool simple = std::ranges::all_of(value.items, [](const Value& item) {
    return is_scalar(item) ||
           (item.is(Value::Kind::Sequence) && std::ranges::all_of(item.items, is_scalar));
  });
  return simple && column + flow(value).size() <= kWidth;
}

/// Writes a value in block style. The caller has written the indentation of the first line.
void write_block(const Value& value, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  bool first = true;
  for (const auto& [key, field] : value.fields) {
    if (!first) out += margin;
    first = false;
    const std::string name = text_of(key);
    out += name + ':';
    if (fits_in_line(field, indent + name.size() + 2)) {
      out += ' ' + flow(field) + '\n';
    } else {
      out += '\n' + std::string(indent + 2, ' ');
      write_block(field, indent + 2, out);
    }
  }
  for (const Value& item : value.items) {
    if (!first) out += margin;
    first = false;
    const std::string line = flow(item);
    if (is_scalar(item) || indent + 2 + line.size() <= kWidth) {
      out += "- " + line + '\n';
    } else {
      out += "- ";
      write_block(item, indent + 2, out);
    }
  }
}

}  // namespace

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Character first = first_character(text);
    if (first.length == 0)
      out += kNoCharacter;
    else
      out += is_special(first) ? escaped(first.code) : std::string(text.substr(0, first.length));
    text.remove_prefix(std::max<std::size_t>(1, first.length));
  }
  return out + '"';
}

std::string to_yaml(const Value& value) {
  if (fits_in_line(value, 0)) return flow(value) + '\n';
  std::string out;
  write_block(value, 0, out);
  return out;
}

}  // namespace pipewright
