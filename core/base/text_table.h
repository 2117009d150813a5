/// Tables for a terminal: columns as wide as what they hold.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pipewright {

class TextTable {
 public:
  /// `left`: columns that are aligned there; the others hold numbers, to the right.
  TextTable(std::vector<std::string> titles, std::vector<std::size_t> left);
  /// As many cells as titles. They are made printable, and shortened where they are very long.
  void add(std::vector<std::string> cells);
  /// Lines that begin with a space, and end with the last character of their last cell.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  ///< the titles first
  std::vector<std::size_t> left_;
};

}  // namespace pipewright
