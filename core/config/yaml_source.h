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
  /// Records a problem, and returns false, where the text is not UTF-8, has control characters, a
  /// directive, a second document, or so many brackets that parsing it would take a machine's
  /// memory: nothing that follows could be trusted.
  bool check(Problems& problems) const;
  /// Line and column from 1, columns in characters (bytes beyond the 4096th of a
  /// line). Places outside the text are put at its end.
  Place place(int line, int column) const;
  /// The text from there on.
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
