#include "datasets/texts/utf8.h"

#include <cstdint>

namespace pipewright {
namespace {

std::uint8_t byte(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

bool continues(std::string_view text, std::size_t i) {
  return i < text.size() && (byte(text, i) & 0xC0) == 0x80;
}

/// Of the character that begins with this byte; 0 if none does.
std::size_t length_from(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF5 ? 4 : 0;
}

/// The second byte rules out long forms, surrogates and what lies above U+10FFFF.
bool second_fits(std::uint8_t first, std::uint8_t second) {
  switch (first) {
    case 0xE0: return second >= 0xA0;
    case 0xED: return second < 0xA0;
    case 0xF0: return second >= 0x90;
    case 0xF4: return second < 0x90;
    default: return true;
  }
}

}  // namespace

std::size_t valid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = length_from(byte(text, at));
    if (length == 0) return at;
    for (std::size_t i = 1; i < length; ++i)
      if (!continues(text, at + i)) return at;
    if (length > 2 && !second_fits(byte(text, at), byte(text, at + 1))) return at;
    at += length;
  }
  return at;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  all.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_from(byte(text, at));
    all.push_back(text.substr(at, length));
    at += length;
  }
  return all;
}

std::size_t next_character(std::string_view text, std::size_t at) {
  while (continues(text, at)) ++at;
  return at;
}

}  // namespace pipewright
