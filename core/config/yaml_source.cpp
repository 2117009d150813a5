// SPDX-License-Identifier: Apache-2.0
#include "core/config/yaml_source.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/utf8.h"

namespace pipewright {
namespace {

bool is_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == 0x85) return false;
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

std::string hexadecimal(unsigned number) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%02X", number);
  return buffer.data();
}

bool is_marker(std::string_view line, std::string_view marker) {
  if (!line.starts_with(marker)) return false;
  return line.size() == marker.size() || line[marker.size()] == ' ' || line[marker.size()] == '\t';
}

bool has_content(std::string_view line) {
  line = trimmed(line);
  return !line.empty() && line[0] != '#';
}

}  // namespace

YamlSource::YamlSource(std::string_view text, std::string name) : name_(std::move(name)) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text_.reserve(text.size());
  lines_.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    text_ += text[i];
    if (text[i] == '\n') lines_.push_back(text_.size());
  }
}

bool YamlSource::check(Problems& problems) const {
  return check_characters(problems) && check_indicators(problems) && check_one_document(problems);
}

// yaml-cpp allocates some hundred bytes for each indicator before we could stop it.
bool YamlSource::check_indicators(Problems& problems) const {
  constexpr std::string_view kIndicators = "[]{},*&\"'";
  constexpr std::size_t kMost = 300'000, kMostOpen = 1000;
  std::size_t count = 0, open = 0;
  for (std::size_t at = text_.find_first_of(kIndicators); at != std::string::npos;
       at = text_.find_first_of(kIndicators, at + 1)) {
    if (text_[at] == '[' || text_[at] == '{') ++open;
    if ((text_[at] == ']' || text_[at] == '}') && open > 0) --open;
    if (++count <= kMost && open <= kMostOpen) continue;
    problems.add(place_of(at), open > kMostOpen
                                   ? concat("the document nests deeper than ", kMostOpen, " levels")
                                   : concat("the document has more than ", kMost,
                                            " brackets, commas and quotes"));
    return false;
  }
  return true;
}

bool YamlSource::check_characters(Problems& problems) const {
  for (std::size_t offset = 0; offset < text_.size();) {
    const Character character = first_character(std::string_view(text_).substr(offset));
    if (character.length == 0) {
      const auto byte = static_cast<unsigned char>(text_[offset]);
      problems.add(place_of(offset), concat("the byte 0x", hexadecimal(byte),
                                            " is not UTF-8; save the file as UTF-8"));
      return false;
    }
    if (is_control(character.code)) {
      const std::string code = hexadecimal(static_cast<unsigned>(character.code));
      problems.add(place_of(offset),
                   concat("the control character 0x", code, " cannot stand in a file; remove it"));
      return false;
    }
    offset += character.length;
  }
  return true;
}

// `---` and `...` at the start of a line end a document even inside quotes or blocks, and yaml-cpp
// takes any line that begins with '%' for a directive. So it is enough to look at lines.
bool YamlSource::check_one_document(Problems& problems) const {
  bool begun = false, ended = false;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const std::string_view text = line(i);
    if (is_marker(text, "...")) {
      ended = true;
      continue;
    }
    const bool marker = is_marker(text, "---");
    if (!marker && !has_content(text)) continue;
    if (ended || (marker && begun)) {
      problems.add(place(static_cast<int>(i), 0),
                   "a second document begins here; a file holds one, so remove one of them");
      return false;
    }
    if (text.starts_with('%')) {
      problems.add(place(static_cast<int>(i), 0),
                   concat("directives such as '", text.substr(0, text.find_first_of(" \t")),
                          "' are not supported; remove the line"));
      return false;
    }
    begun = true;
  }
  return true;
}

std::string_view YamlSource::line(std::size_t index) const {
  const std::size_t end = index + 1 < lines_.size() ? lines_[index + 1] - 1 : text_.size();
  return std::string_view(text_).substr(lines_[index], end - lines_[index]);
}

Place YamlSource::place_of(std::size_t offset) const {
  const auto next = std::ranges::upper_bound(lines_, offset);
  const std::size_t begin = *(next - 1);
  std::string_view before = std::string_view(text_).substr(begin, offset - begin);
  std::size_t characters = before.size();
  // If a file is one huge line, counting characters from its start for each value would take
  // quadratic time.
  constexpr std::size_t kLongestLine = 4096;
  if (before.size() <= kLongestLine) characters = character_count(before);
  return {name_, static_cast<int>(next - lines_.begin()), static_cast<int>(characters) + 1};
}

Place YamlSource::place(int line, int column) const {
  return place_of(text_.size() - from(line, column).size());
}

std::string_view YamlSource::from(int line, int column) const {
  const auto index = static_cast<std::size_t>(line);
  if (line < 0 || column < 0 || index >= lines_.size()) return {};
  const std::size_t offset = lines_[index] + static_cast<std::size_t>(column);
  return std::string_view(text_).substr(std::min(offset, text_.size()));
}

}  // namespace pipewright
