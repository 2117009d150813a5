// SPDX-License-Identifier: Apache-2.0
#include "core/tables/published.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/wording.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

/// A name without case, hyphens, underscores and spaces.
std::string bare(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool same(const std::string& a, const std::string& b) {
  const auto x = published_number(a), y = published_number(b);
  return x && y ? *x == *y : bare(a) == bare(b);
}

/// Whether the first line of a file looks like a header, so that a message may show it. The content
/// of other files, such as /etc/passwd, is not disclosed.
bool is_header(const std::vector<std::string>& columns) {
  const auto is_name = [](const std::string& column) {
    return column.size() <= 100 && column.find(':') == std::string::npos;
  };
  return columns.size() > 1 && std::ranges::all_of(columns, is_name);
}

}  // namespace

std::optional<double> published_number(const std::string& text) {
  return parsed<double>(text);
}

bool PublishedNumbers::has(const std::string& column, const Place& place, const char* what,
                           Problems& problems) const {
  if (std::ranges::count(columns, column) > 0) return true;
  problems.add(place, concat(what, ": ", file.filename().string(), " has no column '", column, "'",
                             is_header(columns) ? suggestion(column, columns)
                                                : "; its first line is no header of a table"));
  return false;
}

std::vector<std::size_t> PublishedNumbers::matching(
    const std::vector<std::pair<std::string, std::string>>& wanted) const {
  std::vector<std::size_t> all;
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (std::ranges::all_of(wanted, [&](const auto& pair) {
          return same(rows[row][index_of(pair.first)], pair.second);
        }))
      all.push_back(row);
  return all;
}

std::optional<std::string> PublishedNumbers::find(
    const std::vector<std::pair<std::string, std::string>>& wanted,
    const std::string& value) const {
  std::set<std::string> found;
  for (const std::size_t row : matching(wanted))
    if (const std::string& text = rows[row][index_of(value)]; !text.empty()) found.insert(text);
  if (found.size() > 1) {
    std::vector<std::string> texts;
    for (const auto& [column, text] : wanted) texts.push_back(concat(column, " ", text));
    throw Error(ErrorKind::Experiment,
                concat("the rows of ", file.filename().string(), " with ", join(texts, ", "),
                       " have ", found.size(), " different values; match another column too, of ",
                       join(columns, ", ")));
  }
  if (found.empty()) return std::nullopt;
  return *found.begin();
}

PublishedNumbers read_published(const std::filesystem::path& file) {
  const std::string text = read_file(file, std::uint64_t{1} << 26);
  PublishedNumbers numbers{read_csv(text, file.string()), file};
  if (numbers.columns.empty())
    throw Error(ErrorKind::Data, "is empty; expected a header and rows", file.string());
  return numbers;
}

}  // namespace pipewright
