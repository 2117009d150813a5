// SPDX-License-Identifier: Apache-2.0
/// The bytes of a YAML file before they are parsed: one clean UTF-8 document. Private to config.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Removes a byte order mark and turns CRLF into LF, so that lines and columns are what an editor
/// shows. Line and column arguments count from 0, columns in bytes (as yaml-cpp counts).
class YamlSource {
 public:
  YamlSource(std::string_view text, std::string name);

  const std::string& text() const { return text_; }
  /// Whether the text may be parsed. Records a problem and returns false if it is not UTF-8, has
  /// control characters, a directive or a second document, or so many brackets that parsing would
  /// exhaust the memory.
  bool check(Problems& problems) const;
  /// The place for messages: line and column from 1. Columns count characters, or bytes beyond the
  /// 4096th byte of a line. A place outside the text becomes its end.
  Place place(int line, int column) const;
  /// The text from this line and column on.
  std::string_view from(int line, int column) const;

 private:
  bool check_characters(Problems& problems) const;
  bool check_indicators(Problems& problems) const;
  bool check_one_document(Problems& problems) const;
  std::string_view line(std::size_t index) const;
  Place place_of(std::size_t offset) const;

  std::string text_;
  std::string name_;
  std::vector<std::size_t> lines_;  // offset of each line's first byte
};

}  // namespace pipewright
