// SPDX-License-Identifier: Apache-2.0
#include "core/base/utf8.h"

#include <algorithm>
#include <array>
#include <functional>

namespace pipewright {
namespace {

/// Whether the byte is a continuation byte: within a character, but not its first.
bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return {};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[length] || code > 0x10FFFF || surrogate) return {};
  return {code, length};
}

std::size_t valid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = first_character(text.substr(at)).length;
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  all.reserve(text.size());
  while (!text.empty()) {
    all.push_back(text.substr(0, next_character(text, 1)));
    text.remove_prefix(all.back().size());
  }
  return all;
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, std::not_fn(continues)));
}

std::size_t next_character(std::string_view text, std::size_t at) {
  while (at < text.size() && continues(text[at])) ++at;
  return at;
}

std::size_t previous_character(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && continues(text[at])) --at;
  return at;
}

}  // namespace pipewright
