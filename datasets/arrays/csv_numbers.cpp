// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/csv_numbers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/csv.h"
#include "core/base/error_at.h"
#include "core/base/parsed.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "core/system/file.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::size_t kShownOfField = 30;  // characters of a wrong field

std::optional<double> number_in(std::string_view text, bool decimal_comma) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::string with_point;
  if (decimal_comma) {
    if (text.find('.') != std::string_view::npos) return std::nullopt;
    with_point = text;
    std::ranges::replace(with_point, ',', '.');
    text = with_point;
  }
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

/// Whether names are 0, 1, 2, …, as pandas calls columns that have none; it may write an empty
/// field for its index before them.
bool counts(std::span<const std::string> names) {
  if (!names.empty() && names.front().empty()) names = names.subspan(1);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return names.size() > 1;
}

/// "2019, 2020, 2021" if the first line's fields are whole numbers that count on, as names of
/// columns may; else "".
std::string counted_names(const CsvReader& lines, bool decimal_comma) {
  std::vector<std::string> shown;
  std::optional<double> last;
  for (const CsvField& field : lines.fields()) {
    const auto number = number_in(field.text, decimal_comma);
    if (!number || *number != std::floor(*number) || (last && *number != *last + 1)) return {};
    last = number;
    shown.emplace_back(field.text);
  }
  constexpr std::size_t kFewest = 3, kMost = 6;
  if (shown.size() < kFewest) return {};
  if (shown.size() > kMost)
    shown.erase(shown.begin() + kMost - 1, shown.end()), shown.push_back("…");
  return join(shown, ", ");
}

/// The names of the first line's fields; none if it is a row.
std::vector<std::string> names_in(const CsvReader& lines, const CsvForm& form) {
  if (form.header == CsvHeader::None) return {};
  std::vector<std::string> names = lines.texts();
  std::vector<const CsvField*> numbers;
  for (const CsvField& field : lines.fields())
    if (number_in(field.text, form.decimal_comma)) numbers.push_back(&field);
  const bool all = numbers.size() == names.size();
  if (form.header == CsvHeader::Names || numbers.empty() || (!all && counts(names))) return names;
  if (all && counts(names))
    lines.fail(1,
               "the first line counts 0, 1, 2, …, as pandas names columns; expected "
               "dataset.header: names, or none if it is a sample");
  if (all) return {};
  lines.fail(numbers.front()->column,
             concat("'", printable(numbers.front()->text, kShownOfField),
                    "' is a number, other fields of the first line are not; expected a line of "
                    "names, none of them a number, or numbers only; or dataset.header: names, or "
                    "none if it is a sample"));
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
        throw experiment_error(column.where, column.option, " names column ", index + 1, " of ",
                               file_, " twice");
      indices.push_back(index);
    }
    return indices;
  }

 private:
  std::size_t numbered(const CsvColumn& column) const {
    if (static_cast<std::uint64_t>(column.number) > count_)
      throw experiment_error(column.where, column.option, " names column ", column.number, ", but ",
                             file_, " has ", counted(count_, "column"));
    return static_cast<std::size_t>(column.number) - 1;
  }

  std::size_t named(const CsvColumn& column) const {
    const auto found = std::ranges::find(names_, column.name);
    if (found == names_.end())
      throw experiment_error(
          column.where, column.option, " names the column '", column.name, "', but ",
          names_.empty() ? concat("the first line of ", file_,
                                  " names no columns; expected the column's number, from 1")
                         : concat(file_, " has no such column", suggestion(column.name, names_)));
    if (std::ranges::count(names_, column.name) > 1)
      throw experiment_error(column.where, column.option, " names the column '", column.name,
                             "', of which ", file_,
                             " has several; expected the column's number, from 1");
    return static_cast<std::size_t>(found - names_.begin());
  }

  std::string file_;
  std::size_t count_;
  const std::vector<std::string>& names_;
};

/// "'a', 'b' and 'c'"
std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names)
    shown.push_back(concat("'", printable(name, kShownOfField), "'"));
  return listed(shown);
}

/// Refuses a file of these names that lacks some of the columns of another one, has several of a
/// name, or has another name in the place of a column that its name alone does not tell.
void check_as_elsewhere(const std::filesystem::path& path, const CsvColumns& columns,
                        const std::vector<std::string>& names) {
  std::vector<std::string> lacking, repeated;
  for (const auto* part : {&columns.inputs, &columns.targets})
    for (const CsvColumn& column : *part) {
      const auto place = static_cast<std::size_t>(column.number);
      const bool there = place > 0 ? place <= names.size() && names[place - 1] == column.name
                                   : std::ranges::count(names, column.name) > 0;
      if (!there)
        lacking.push_back(column.name);
      else if (place == 0 && std::ranges::count(names, column.name) > 1)
        repeated.push_back(column.name);
    }
  if (names.empty())
    throw data_error(path, "the first line names no columns, that of ", columns.as_in,
                     " does; expected a line with ", quoted(lacking));
  if (!lacking.empty())
    throw data_error(path, "lacks the ", lacking.size() == 1 ? "column " : "columns ",
                     quoted(lacking), " of ", columns.as_in,
                     "; expected its columns, in any order");
  if (!repeated.empty())
    throw data_error(path, "has several columns ", quoted(repeated), ", ", columns.as_in,
                     " has one of a name");
}

/// The columns of these indices by their names. Those that share their name with others, or have
/// none, are chosen by their number.
std::vector<CsvColumn> by_name(const std::vector<std::size_t>& indices,
                               const std::vector<std::string>& names) {
  std::vector<CsvColumn> columns;
  for (const std::size_t i : indices) {
    const bool alone = !names[i].empty() && std::ranges::count(names, names[i]) == 1;
    columns.push_back({.number = alone ? 0 : static_cast<std::int64_t>(i) + 1, .name = names[i]});
  }
  return columns;
}

/// What an unreadable number is called in a message: "column 3 (price)".
std::string column_text(std::size_t index, const std::vector<std::string>& names) {
  return concat(
      "column ", index + 1,
      index < names.size() ? concat(" (", printable(names[index], kShownOfField), ")") : "");
}

/// Refuses a field that is no number.
[[noreturn]] void refuse(const CsvReader& lines, const std::string& column, const CsvField& field,
                         bool decimal_comma) {
  const bool other = number_in(field.text, !decimal_comma).has_value();
  lines.fail(
      field.column,
      concat(column, " is ",
             field.text.empty() ? "empty" : concat("'", printable(field.text, kShownOfField), "'"),
             "; expected a finite number such as ", decimal_comma ? "-1,5e3" : "-1.5e3",
             other ? concat(" (dataset.decimal: ", decimal_comma ? "point" : "comma", ")") : "",
             ", or another choice of dataset.columns and dataset.target"));
}

/// What is behind the chosen columns of all rows.
struct Rows {
  std::vector<std::size_t> inputs, targets;
  std::size_t unnamed = 0;
  std::string first_line;  // CsvNumbers::first_line
  std::vector<double> x, y;
  std::vector<std::string> texts;  // of one target that is no number
};

/// Adds the fields of rows to `rows`.
class RowAdder {
 public:
  RowAdder(const CsvReader& lines, const std::vector<std::string>& names, const CsvForm& form,
           Rows& rows)
      : lines_(lines), names_(names), form_(form), rows_(rows) {}

  void add() {
    for (const std::size_t i : rows_.inputs) rows_.x.push_back(number(i));
    if (form_.classes && rows_.targets.size() == 1) return add_class(rows_.targets[0]);
    for (const std::size_t i : rows_.targets) rows_.y.push_back(number(i));
  }

 private:
  std::optional<double> number_at(std::size_t column) const {
    return number_in(lines_.fields()[column].text, form_.decimal_comma);
  }

  double number(std::size_t column) const {
    if (const auto value = number_at(column)) return *value;
    refuse(lines_, column_text(column, names_), lines_.fields()[column], form_.decimal_comma);
  }

  /// Classes are numbers or texts, as in the first row.
  void add_class(std::size_t column) {
    const CsvField& field = lines_.fields()[column];
    const auto value = number_at(column);
    const bool texts = rows_.y.empty() && (!rows_.texts.empty() || !value) && !field.text.empty();
    if (!texts) {
      rows_.y.push_back(number(column));
      return;
    }
    if (value)
      lines_.fail(field.column,
                  concat(column_text(column, names_), " is ", printable(field.text, kShownOfField),
                         "; classes are all numbers, or all names"));
    rows_.texts.emplace_back(field.text);
  }

  const CsvReader& lines_;
  const std::vector<std::string>& names_;
  const CsvForm& form_;
  Rows& rows_;
};

CsvNumbers as_tensors(const Rows& rows) {
  const auto tensor = [](const std::vector<double>& values, std::size_t columns) {
    const auto wide = static_cast<std::int64_t>(columns);
    at::Tensor made = at::empty({std::ssize(values) / wide, wide}, at::kDouble);
    std::ranges::copy(values, made.mutable_data_ptr<double>());
    return made;
  };
  return {.x = tensor(rows.x, rows.inputs.size()),
          .y = rows.texts.empty() ? tensor(rows.y, rows.targets.size()) : at::Tensor(),
          .texts = rows.texts,
          .unnamed = rows.unnamed,
          .first_line = rows.first_line};
}

/// Which columns are inputs and which are targets, of a table of `count` columns.
Rows chosen_columns(const CsvReader& lines, const CsvColumns& columns, const ColumnChoice& choice,
                    const std::vector<std::string>& names) {
  const std::size_t count = lines.fields().size();
  Rows rows{.inputs = choice.of(columns.inputs), .targets = choice.of(columns.targets)};
  if (rows.targets.empty()) rows.targets = {count - 1};
  if (columns.inputs.empty())
    for (std::size_t i = 0; i < count; ++i) {
      if (std::ranges::count(rows.targets, i) > 0) continue;
      const bool unnamed = !names.empty() && names[i].empty();
      unnamed ? void(++rows.unnamed) : rows.inputs.push_back(i);
    }
  for (std::size_t i = 0; i < rows.inputs.size(); ++i)
    if (std::ranges::count(rows.targets, rows.inputs[i]) > 0)
      throw experiment_error(columns.inputs[i].where, columns.inputs[i].option, " names column ",
                             rows.inputs[i] + 1,
                             " as an input, which is the target; choose another dataset.target");
  if (rows.inputs.empty())
    lines.fail(1, concat("a line of ", counted(count, "field"),
                         "; expected inputs and a target, separated by dataset.separator"));
  return rows;
}

}  // namespace

CsvNumbers read_csv_numbers(const std::filesystem::path& path, const CsvColumns& columns,
                            const CsvForm& form) {
  const std::string text = read_file(path, kMostBytes);
  CsvReader lines(text, path.string(), {.separator = form.separator, .relaxed = true});
  if (!next_row(lines)) throw data_error(path, "is empty");
  const std::size_t count = lines.fields().size();
  const std::vector<std::string> names = names_in(lines, form);
  if (!columns.as_in.empty()) check_as_elsewhere(path, columns, names);
  Rows rows = chosen_columns(lines, columns, ColumnChoice(path, count, names), names);
  if (names.empty() && form.header == CsvHeader::Auto)
    rows.first_line = counted_names(lines, form.decimal_comma);
  RowAdder adder(lines, names, form, rows);
  for (bool more = names.empty() || next_row(lines); more; more = next_row(lines)) {
    if (lines.fields().size() != count)
      lines.fail(1, concat("a line of ", counted(lines.fields().size(), "field"), "; expected ",
                           count, ", as in the first line"));
    adder.add();
  }
  if (rows.y.empty() && rows.texts.empty()) throw data_error(path, "has no row of numbers");
  CsvNumbers numbers = as_tensors(rows);
  if (!names.empty())
    numbers.same_elsewhere = {by_name(rows.inputs, names), by_name(rows.targets, names),
                              path.filename().string()};
  return numbers;
}

}  // namespace pipewright
