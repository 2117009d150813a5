#include "core/config/quoted_text.h"

#include <array>
#include <cstdio>

namespace pipewright {
namespace {

std::string escape(unsigned code) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", code & 0xFFFFU);
  return text.data();
}

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

std::size_t special_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte_at(text, 0);
  if (first < 0x20 || first == 0x7F || first == '"' || first == '\\') return 1;
  if (first == 0xC2 && text.size() > 1 && byte_at(text, 1) < 0xA0) return 2;  // control characters
  for (const std::string_view mark : {"\u2028", "\u2029", "\uFEFF"})
    if (text.starts_with(mark)) return mark.size();
  return 0;
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = special_length(text);
    const char first = text[0];
    if (length == 0) {
      out += first;
    } else if (first == '"' || first == '\\') {
      out += {'\\', first};
    } else if (first == '\n' || first == '\t') {
      out += first == '\n' ? "\\n" : "\\t";
    } else if (length == 1) {
      out += escape(byte_at(text, 0));
    } else if (length == 2) {
      out += escape(byte_at(text, 1));
    } else {
      out += escape((byte_at(text, 0) & 0x0F) << 12 | (byte_at(text, 1) & 0x3F) << 6 |
                    (byte_at(text, 2) & 0x3F));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

}  // namespace pipewright
