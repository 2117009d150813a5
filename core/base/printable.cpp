// SPDX-License-Identifier: Apache-2.0
#include "core/base/printable.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace pipewright {
namespace {

struct CodeRange {
  char32_t first, last;
};

/// Characters that are invisible or only steer the layout of text: they can hide or reorder the
/// text around them. Variation selectors, which choose how an emoji looks, are not among them.
constexpr std::array kHidden = {
    CodeRange{0x80, 0x9F},        // control characters
    CodeRange{0xAD, 0xAD},        // soft hyphen
    CodeRange{0x061C, 0x061C},    // direction mark
    CodeRange{0x115F, 0x1160},    // fillers
    CodeRange{0x180B, 0x180F},    // Mongolian selectors
    CodeRange{0x200B, 0x200F},    // zero-width characters; direction marks
    CodeRange{0x2028, 0x202E},    // line and paragraph separators; embeddings, overrides
    CodeRange{0x2060, 0x206F},    // joiners; direction isolates
    CodeRange{0x3164, 0x3164},    // filler
    CodeRange{0xFDD0, 0xFDEF},    // noncharacters
    CodeRange{0xFEFF, 0xFEFF},    // byte order mark
    CodeRange{0xFFA0, 0xFFA0},    // filler
    CodeRange{0xFFF0, 0xFFFB},    // annotations
    CodeRange{0xFFFE, 0xFFFF},    // noncharacters
    CodeRange{0x1D173, 0x1D17A},  // format controls of musical notes
    CodeRange{0xE0000, 0xE0FFF},  // tags and rare selectors
};

/// Combining characters: they are drawn above or below the character before them.
constexpr std::array kCombining = {
    CodeRange{0x0300, 0x036F}, CodeRange{0x0483, 0x0489}, CodeRange{0x0591, 0x05BD},
    CodeRange{0x064B, 0x065F}, CodeRange{0x0E34, 0x0E3A}, CodeRange{0x0E47, 0x0E4E},
    CodeRange{0x1AB0, 0x1AFF}, CodeRange{0x1DC0, 0x1DFF}, CodeRange{0x20D0, 0x20FF},
    CodeRange{0x3099, 0x309A}, CodeRange{0xFE00, 0xFE0F}, CodeRange{0xFE20, 0xFE2F},
};

/// Characters that are two columns wide (Unicode's East Asian Width W and F, and the emoji).
constexpr std::array kWide = {
    CodeRange{0x1100, 0x115F},   CodeRange{0x231A, 0x231B},   CodeRange{0x2329, 0x232A},
    CodeRange{0x23E9, 0x23EC},   CodeRange{0x2E80, 0x303E},   CodeRange{0x3041, 0x33FF},
    CodeRange{0x3400, 0x4DBF},   CodeRange{0x4E00, 0x9FFF},   CodeRange{0xA000, 0xA4CF},
    CodeRange{0xA960, 0xA97F},   CodeRange{0xAC00, 0xD7A3},   CodeRange{0xF900, 0xFAFF},
    CodeRange{0xFE30, 0xFE6F},   CodeRange{0xFF00, 0xFF60},   CodeRange{0xFFE0, 0xFFE6},
    CodeRange{0x16FE0, 0x18CFF}, CodeRange{0x1AFF0, 0x1B2FF}, CodeRange{0x1F300, 0x1F64F},
    CodeRange{0x1F680, 0x1F6FF}, CodeRange{0x1F7E0, 0x1F7EB}, CodeRange{0x1F900, 0x1F9FF},
    CodeRange{0x1FA70, 0x1FAFF}, CodeRange{0x20000, 0x3FFFD},
};

bool within(std::span<const CodeRange> ranges, char32_t code) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &CodeRange::first);
  return after != ranges.begin() && code <= std::prev(after)->last;
}

std::string escape(const char* format, unsigned number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

/// Length in bytes of the first character; 1 where the bytes are not valid UTF-8.
std::size_t length_of(std::string_view text) {
  return std::max<std::size_t>(1, first_character(text).length);
}

void append_printable(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const auto [code, length] = first_character(text);
    if (length == 0) {
      out += escape("\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (code < 0x20 || code == 0x7F) {
      out += escape("\\x%02x", code);
    } else if (within(kHidden, code)) {
      out += escape("\\u{%x}", code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
}

/// Length in bytes of the first `characters` characters of the text.
std::size_t bytes_of(std::string_view text, std::size_t characters) {
  std::size_t at = 0;
  for (; characters > 0 && at < text.size(); --characters) at += length_of(text.substr(at));
  return at;
}

void append_line(std::string& out, std::string_view text, std::size_t most) {
  std::size_t characters = 0;
  if (text.size() > most)
    for (std::size_t at = 0; at < text.size(); ++characters) at += length_of(text.substr(at));
  if (characters <= most) return append_printable(out, text);
  const std::size_t left = characters - most;
  append_printable(out, text.substr(0, bytes_of(text, most - most / 2)));
  out += concat("…(", left, " characters left out)…");
  append_printable(out, text.substr(bytes_of(text, most - most / 2 + left)));
}

std::size_t columns_of(char32_t code) {
  if (code < kCombining[0].first) return 1;
  return within(kCombining, code) ? 0 : within(kWide, code) ? 2 : 1;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  append_line(out, text, most);
  return out;
}

std::string printable_lines(std::string_view text, std::size_t most) {
  std::string out;
  for (;;) {
    const std::size_t end = text.find('\n');
    append_line(out, text.substr(0, end), most);
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::size_t width_of(std::string_view text) {
  std::size_t columns = 0;
  for (; !text.empty(); text.remove_prefix(length_of(text)))
    columns += columns_of(first_character(text).code);
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  std::size_t taken = 0, kept = 0;  // kept: bytes that leave room for "…"
  for (std::size_t at = 0; at < text.size(); at += length_of(text.substr(at))) {
    if (taken + 1 <= columns) kept = at;
    taken += columns_of(first_character(text.substr(at)).code);
    if (taken > columns)
      return columns == 0 ? std::string() : std::string(text.substr(0, kept)) + "…";
  }
  return std::string(text);
}

}  // namespace pipewright
