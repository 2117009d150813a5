// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/csv_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "core/system/file.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMostColumns = 1 << 20, kShownOfField = 30;  // characters of a wrong field
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// A field without quotes and the spaces around it, and where it begins in its line, from 1.
struct Field {
  std::string_view text;
  std::size_t column = 1;
};

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc() || stop != end || !std::isfinite(value)) return {};
  return value;
}

/// The lines of a file, one after another.
class Lines {
 public:
  Lines(std::string_view text, const std::filesystem::path& path, char separator)
      : rest_(text), path_(path.string()), separator_(separator) {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw Error(ErrorKind::Data, what, concat(path_, ":", line_, ":", column));
  }

  /// Reads the next line into `fields`; false at the end. Empty lines at the end count for nothing.
  bool next(std::vector<Field>& fields) {
    if (rest_.find_first_not_of("\r\n") == std::string_view::npos) return false;
    ++line_;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (trimmed(line).empty()) fail(1, "an empty line; expected a row of numbers");
    fields.clear();
    for (std::size_t at = 0; at <= line.size();) at = add_field(line, at, fields) + 1;
    return true;
  }

 private:
  /// Adds the field that begins there, and returns where it ends.
  std::size_t add_field(std::string_view line, std::size_t begin, std::vector<Field>& fields) {
    if (fields.size() == kMostColumns)
      fail(begin + 1, concat("more than ", kMostColumns, " fields in a line"));
    const std::size_t first = std::min(line.find_first_not_of(' ', begin), line.size());
    if (first == line.size() || line[first] != '"') {
      const std::size_t end = std::min(line.find(separator_, begin), line.size());
      fields.push_back({trimmed(line.substr(begin, end - begin)), std::min(first, end) + 1});
      return end;
    }
    const std::size_t closing = line.find('"', first + 1);
    if (closing == std::string_view::npos)
      fail(first + 1, "a quote without its closing quote in the same line");
    const std::size_t end = std::min(line.find_first_not_of(' ', closing + 1), line.size());
    if (end < line.size() && line[end] != separator_)
      fail(end + 1, concat("'", printable(line.substr(end), kShownOfField),
                           "' behind a quoted field; expected the separator"));
    fields.push_back({line.substr(first + 1, closing - first - 1), first + 1});
    return end;
  }

  std::string_view rest_;
  std::string path_;
  char separator_;
  std::size_t line_ = 0;
};

/// The names of the first line's fields; none if all are numbers.
std::vector<std::string> names_in(const Lines& lines, const std::vector<Field>& first) {
  std::vector<std::string> names;
  std::vector<const Field*> numbers;
  for (const Field& field : first) {
    names.emplace_back(field.text);
    if (number_in(field.text)) numbers.push_back(&field);
  }
  if (numbers.size() == first.size()) return {};
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

double value_of(const Lines& lines, const Field& field, std::size_t index,
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
Rows chosen_columns(const Lines& lines, const CsvColumns& columns, const ColumnChoice& choice,
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
  Lines lines(text, path, separator);
  std::vector<Field> fields;
  if (!lines.next(fields)) throw Error(ErrorKind::Data, "is empty", path.string());
  const std::size_t count = fields.size();
  const std::vector<std::string> names = names_in(lines, fields);
  Rows rows = chosen_columns(lines, columns, ColumnChoice(path, count, names), count);
  const auto add = [&](const std::vector<std::size_t>& chosen, std::vector<double>& to) {
    for (const std::size_t i : chosen) to.push_back(value_of(lines, fields[i], i, names));
  };
  for (bool more = names.empty() || lines.next(fields); more; more = lines.next(fields)) {
    if (fields.size() != count)
      lines.fail(1, concat("a line of ", counted(fields.size(), "field"), "; expected ", count,
                           ", as in the first line"));
    add(rows.inputs, rows.x);
    add(rows.targets, rows.y);
  }
  if (rows.y.empty()) throw Error(ErrorKind::Data, "has no row of numbers", path.string());
  return as_tensors(rows);
}

}  // namespace pipewright
