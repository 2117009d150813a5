// SPDX-License-Identifier: Apache-2.0
#include "core/config/component_name.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/utf8.h"

namespace pipewright {
namespace {

constexpr std::size_t kLongest = 100;

bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == ' ';
}

/// The first character of the text for messages: "'/'" if it is printable ASCII, else "U+001B".
std::string shown_character(std::string_view text) {
  if (text[0] > ' ' && text[0] <= '~') return concat("'", text[0], "'");
  const Character first = first_character(text);
  const unsigned code = first.length > 0 ? first.code : static_cast<unsigned char>(text[0]);
  std::array<char, 16> digits{};
  std::snprintf(digits.data(), digits.size(), "U+%04X", code);
  return digits.data();
}

/// A fault of the name, to follow "name " in a message; "" if it has none.
std::string fault_of(const std::string& text) {
  if (text.empty()) return "is empty";
  if (text.size() > kLongest) return concat("is ", text.size(), " bytes long");
  if (const auto wrong = std::ranges::find_if_not(text, is_allowed); wrong != text.end())
    return concat("has ", shown_character({wrong, text.end()}), " in it");
  if (text == "." || text == "..") return concat("is '", text, "'");
  if (text.front() == ' ' || text.back() == ' ') return "begins or ends with a space";
  return {};
}

}  // namespace

void check_component_name(const Value& text, const std::string& what, Problems& problems) {
  const std::string fault = fault_of(text.text);
  if (fault.empty()) return;
  problems.add(text.place,
               concat(what, " ", fault, "; it names a folder, so expected are at most ", kLongest,
                      " letters (a-z, A-Z), digits, '-', '_', '.' and spaces between them"));
}

std::string component_name_of(std::string_view text) {
  std::string name;
  bool replaced = false;  // whether the previous character was
  for (const char c : text.substr(0, 10 * kLongest)) {
    const bool stays = is_allowed(c) && !(replaced && c == ' ');
    if (stays || !replaced) name += stays ? c : '_';
    replaced = !stays;
  }
  if (name.size() > kLongest) name.resize(kLongest);
  if (name.empty() || name == "." || name == "..") return "_";
  if (name.front() == ' ') name.front() = '_';
  if (name.back() == ' ') name.back() = '_';
  return name;
}

}  // namespace pipewright
