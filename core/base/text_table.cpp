// SPDX-License-Identifier: Apache-2.0
#include "core/base/text_table.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/printable.h"

namespace pipewright {

TextTable::TextTable(std::vector<std::string> titles, std::vector<std::size_t> left)
    : left_(std::move(left)) {
  rows_.push_back(std::move(titles));
}

void TextTable::add(std::vector<std::string> cells) {
  PIPEWRIGHT_CHECK(cells.size() == rows_[0].size(), cells.size(), " cells");
  constexpr std::size_t kMost = 200;
  for (std::string& cell : cells) cell = printable(cell, kMost);
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], width_of(row[column]));
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string space(widths[column] - width_of(row[column]), ' ');
      const bool left = std::ranges::count(left_, column) > 0;
      line += (column == 0 ? " " : "  ") + (left ? row[column] + space : space + row[column]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace pipewright
