// SPDX-License-Identifier: Apache-2.0
/// Text tables for a terminal, each column as wide as its widest cell.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pipewright {

class TextTable {
 public:
  /// `left`: indices, from 0, of the left-aligned columns. The others are right-aligned, for
  /// numbers.
  TextTable(std::vector<std::string> titles, std::vector<std::size_t> left);
  /// Adds a row. Requires one cell per title. Cells are made printable and shortened to 200
  /// characters.
  void add(std::vector<std::string> cells);
  /// The whole table, titles first. Each line begins with a space and has none at its end.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  ///< the titles first
  std::vector<std::size_t> left_;
};

}  // namespace pipewright
