// SPDX-License-Identifier: Apache-2.0
#include "core/tables/published.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/printed.h"
#include "core/base/wording.h"
#include "core/system/file.h"
#include "core/tables/run_keys.h"
#include "core/tables/table.h"

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
  const auto x = parsed<double>(a), y = parsed<double>(b);
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

/// The place of a name, which is added if it is not there.
std::size_t index_in(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

PublishedNumber number_of(const std::string& text, bool error) {
  PublishedNumber number{.text = text, .value = parsed<double>(text)};
  if (!error || !number.value) return number;
  const std::size_t dot = text.find('.');
  const auto decimals = dot == std::string::npos ? 0 : static_cast<int>(text.size() - dot - 1);
  number.value = 100 - *number.value;
  number.text = printed("%.*f", decimals, *number.value);
  return number;
}

/// Indices of the notes for the labels of the cell's runs. Adds new notes to the table.
std::vector<std::size_t> notes_of(const TableCell& cell, const TablePublished& wanted,
                                  const std::vector<RunRecord>& runs, Table& table) {
  std::vector<std::size_t> notes;
  for (const auto& difference : wanted.differs) {
    const std::string& label = difference.first;
    if (label == "all" ||
        std::ranges::any_of(cell.runs, [&](std::size_t run) { return runs[run].label == label; }))
      notes.push_back(index_in(table.notes, difference.second));
  }
  return notes;
}

}  // namespace

ColumnTexts texts_of(const ColumnKeys& match, const RunRecord& run) {
  ColumnTexts texts;
  for (const auto& [column, key] : match) texts.emplace_back(column, key_text(run, key.name));
  return texts;
}

bool PublishedNumbers::has(std::vector<TableKey> wanted, const ColumnKeys& match, const char* what,
                           Problems& problems) const {
  for (const auto& [column, key] : match) wanted.push_back({column, key.place});
  std::erase_if(wanted,
                [&](const TableKey& each) { return std::ranges::count(columns, each.name) > 0; });
  for (const TableKey& each : wanted)
    problems.add(each.place,
                 concat(what, ": ", file.filename().string(), " has no column '", each.name, "'",
                        is_header(columns) ? suggestion(each.name, columns)
                                           : "; its first line is no header of a table"));
  return wanted.empty();
}

std::vector<std::size_t> PublishedNumbers::matching(const ColumnTexts& wanted) const {
  std::vector<std::size_t> all;
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (std::ranges::all_of(wanted, [&](const auto& pair) {
          return same(rows[row][index_of(pair.first)], pair.second);
        }))
      all.push_back(row);
  return all;
}

std::optional<std::string> PublishedNumbers::find(const ColumnTexts& wanted,
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

void add_published(Table& table, const TablePublished& wanted, const std::vector<RunRecord>& runs,
                   Problems& problems) {
  const PublishedNumbers numbers = read_published(wanted.file);
  std::vector<TableKey> columns{wanted.value};
  if (wanted.std) columns.push_back(*wanted.std);
  if (!numbers.has(std::move(columns), wanted.match, "table.published", problems)) return;
  for (std::vector<TableCell>& row : table.cells) {
    for (TableCell& cell : row) {
      std::vector<std::string> found, deviations;
      for (const std::size_t run : cell.runs) {
        const ColumnTexts texts = texts_of(wanted.match, runs[run]);
        try {
          const auto text = numbers.find(texts, wanted.value.name);
          if (!text) continue;
          index_in(found, *text);
          if (wanted.std) index_in(deviations, numbers.find(texts, wanted.std->name).value_or(""));
        } catch (const Error& error) {
          problems.add(wanted.place, concat("table.published: ", error.message()));
        }
      }
      if (found.size() != 1) continue;
      cell.published = number_of(found.front(), wanted.error);
      if (deviations.size() == 1) cell.published->std = deviations.front();
      cell.published->notes = notes_of(cell, wanted, runs, table);
    }
  }
}

}  // namespace pipewright
