// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/csv_numbers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/base/csv.h"
#include "core/base/parsed.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "core/system/file.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::size_t kShownOfField = 30;  // characters of a wrong field

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto value = parsed<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Reads the next row; false at the end. Blank lines at the end count for nothing, others are
/// refused.
bool next_row(CsvReader& lines) {
  std::size_t blank = 0;
  while (lines.next()) {
    if (lines.fields().empty()) {
      if (blank == 0) blank = lines.line();
    } else if (blank == 0) {
      return true;
    } else {
      lines.fail(1, concat("a row behind the empty line ", blank));
    }
  }
  return false;
}

/// The names of the first line's fields; none if all are numbers.
std::vector<std::string> names_in(const CsvReader& lines) {
  std::vector<std::string> names;
  std::vector<const CsvField*> numbers;
  for (const CsvField& field : lines.fields()) {
    names.emplace_back(field.text);
    if (number_in(field.text)) numbers.push_back(&field);
  }
  if (numbers.size() == names.size()) return {};
  if (!numbers.empty())
    lines.fail(numbers.front()->column,
               concat("'", printable(numbers.front()->text, kShownOfField),
                      "' is a number, other fields of the first line are not; expected a line of "
                      "names, none of them a number, or numbers only"));
  return names;
}

/// The indices of the chosen columns among `count`.
class ColumnChoice {
 public:
  ColumnChoice(const std::filesystem::path& path, std::size_t count,
               const std::vector<std::string>& names)
      : file_(path.filename().string()), count_(count), names_(names) {}

  std::vector<std::size_t> of(const std::vector<CsvColumn>& columns) const {
    std::vector<std::size_t> indices;
    for (const CsvColumn& column : columns) {
      const std::size_t index = column.number > 0 ? numbered(column) : named(column);
      if (std::ranges::count(indices, index) > 0)
        throw Error(ErrorKind::Experiment,
                    concat(column.option, " names column ", index + 1, " of ", file_, " twice"),
                    column.where);
      indices.push_back(index);
    }
    return indices;
  }

 private:
  std::size_t numbered(const CsvColumn& column) const {
    if (static_cast<std::uint64_t>(column.number) > count_)
      throw Error(ErrorKind::Experiment,
                  concat(column.option, " names column ", column.number, ", but ", file_, " has ",
                         counted(count_, "column")),
                  column.where);
    return static_cast<std::size_t>(column.number) - 1;
  }

  std::size_t named(const CsvColumn& column) const {
    const auto found = std::ranges::find(names_, column.name);
    if (found == names_.end())
      throw Error(ErrorKind::Experiment,
                  concat(column.option, " names the column '", column.name, "', but ",
                         names_.empty() ? concat("the first line of ", file_,
                                                 " names no columns; "
                                                 "expected the column's number, from 1")
                                        : concat(file_, " has no such column",
                                                 suggestion(column.name, names_))),
                  column.where);
    if (std::ranges::count(names_, column.name) > 1)
      throw Error(ErrorKind::Experiment,
                  concat(column.option, " names the column '", column.name, "', of which ", file_,
                         " has several; expected the column's number, from 1"),
                  column.where);
    return static_cast<std::size_t>(found - names_.begin());
  }

  std::string file_;
  std::size_t count_;
  const std::vector<std::string>& names_;
};

/// What an unreadable number is called in a message: "column 3 (price)".
std::string column_text(std::size_t index, const std::vector<std::string>& names) {
  return concat(
      "column ", index + 1,
      index < names.size() ? concat(" (", printable(names[index], kShownOfField), ")") : "");
}

double value_of(const CsvReader& lines, const CsvField& field, std::size_t index,
                const std::vector<std::string>& names) {
  if (const auto value = number_in(field.text)) return *value;
  lines.fail(
      field.column,
      concat(column_text(index, names), " is ",
             field.text.empty() ? "empty" : concat("'", printable(field.text, kShownOfField), "'"),
             "; expected a finite number such as -1.5e3, or another choice of "
             "dataset.columns and dataset.target"));
}

/// What is behind the chosen columns of all rows.
struct Rows {
  std::vector<std::size_t> inputs, targets;
  std::vector<double> x, y;
};

CsvNumbers as_tensors(const Rows& rows) {
  const auto tensor = [](const std::vector<double>& values, std::size_t columns) {
    const auto wide = static_cast<std::int64_t>(columns);
    at::Tensor made = at::empty({std::ssize(values) / wide, wide}, at::kDouble);
    std::ranges::copy(values, made.mutable_data_ptr<double>());
    return made;
  };
  return {tensor(rows.x, rows.inputs.size()), tensor(rows.y, rows.targets.size())};
}

/// Which columns are inputs and which are targets, of a table of `count` columns.
Rows chosen_columns(const CsvReader& lines, const CsvColumns& columns, const ColumnChoice& choice,
                    std::size_t count) {
  Rows rows{.inputs = choice.of(columns.inputs), .targets = choice.of(columns.targets)};
  if (rows.targets.empty()) rows.targets = {count - 1};
  if (columns.inputs.empty())
    for (std::size_t i = 0; i < count; ++i)
      if (std::ranges::count(rows.targets, i) == 0) rows.inputs.push_back(i);
  for (std::size_t i = 0; i < rows.inputs.size(); ++i)
    if (std::ranges::count(rows.targets, rows.inputs[i]) > 0)
      throw Error(ErrorKind::Experiment,
                  concat(columns.inputs[i].option, " names column ", rows.inputs[i] + 1,
                         " as an input, which is the target; choose another dataset.target"),
                  columns.inputs[i].where);
  if (rows.inputs.empty())
    lines.fail(1, concat("a line of ", counted(count, "field"),
                         "; expected inputs and a target, separated by dataset.separator"));
  return rows;
}

}  // namespace

CsvNumbers read_csv_numbers(const std::filesystem::path& path, const CsvColumns& columns,
                            char separator) {
  const std::string text = read_file(path, kMostBytes);
  CsvReader lines(text, path.string(), {.separator = separator, .relaxed = true});
  if (!next_row(lines)) throw Error(ErrorKind::Data, "is empty", path.string());
  const std::size_t count = lines.fields().size();
  const std::vector<std::string> names = names_in(lines);
  Rows rows = chosen_columns(lines, columns, ColumnChoice(path, count, names), count);
  const auto add = [&](const std::vector<std::size_t>& chosen, std::vector<double>& to) {
    for (const std::size_t i : chosen) to.push_back(value_of(lines, lines.fields()[i], i, names));
  };
  for (bool more = names.empty() || next_row(lines); more; more = next_row(lines)) {
    if (lines.fields().size() != count)
      lines.fail(1, concat("a line of ", counted(lines.fields().size(), "field"), "; expected ",
                           count, ", as in the first line"));
    add(rows.inputs, rows.x);
    add(rows.targets, rows.y);
  }
  if (rows.y.empty()) throw Error(ErrorKind::Data, "has no row of numbers", path.string());
  return as_tensors(rows);
}

}  // namespace pipewright
