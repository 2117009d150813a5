// SPDX-License-Identifier: Apache-2.0
// How rows of results are written and read as CSV.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/base/csv.h"
#include "core/base/markup.h"
#include "core/base/parsed.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "core/records/result_rows.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::string_view kLast = "last.", kBest = "best.", kEach = "each.",
                           kWithin = "evaluation.";
constexpr std::string_view kNoValue = "_";
constexpr const char* kStarted = "started";  // a column that files of earlier versions lack
constexpr std::size_t kMostEpochs = 1'000'000, kMostNumbers = 10'000'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;

/// Only of test metrics the best epoch is a result.
bool has_best(const std::string& metric) {
  return metric.starts_with("test_") && better_values(metric) != Better::NotJudged;
}

/// "0.5 0.25 _*3 0.125": the values of all epochs, "_" where there is none, and "*3" behind one
/// that stands three times in succession.
std::string list_field(const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size();) {
    const std::string value =
        std::isnan(values[i]) ? std::string(kNoValue) : number_text(values[i]);
    std::size_t end = i + 1;
    while (end < values.size() &&
           (std::isnan(values[end]) ? std::string(kNoValue) : number_text(values[end])) == value)
      ++end;
    if (!text.empty()) text += ' ';
    text += value;
    if (end - i > 1) text += concat("*", end - i);
    i = end;
  }
  return text;
}

std::optional<double> number_of_text(std::string_view text) {
  const auto value = parsed<double>(text);
  return value && !std::isnan(*value) ? value : std::nullopt;
}

std::string number_field(double value) {
  return std::isnan(value) ? std::string() : number_text(value);
}

/// A field that is read into a row.
struct Taken {
  const CsvReader& reader;
  const CsvField& field;
  ResultRow& row;
  std::size_t& numbers;  ///< in all lists so far

  std::string shown() const { return concat("'", printable(field.text, 40), "'"); }
  [[noreturn]] void fail(const std::string& message, std::size_t at = 0) const {
    reader.fail(field.column + at, message);
  }
};

using Lists = std::map<std::string, std::vector<double>>;

/// How many values the lists of a row have: one for each epoch; or, of evaluations, as many as the
/// first list.
std::optional<std::size_t> length_of(Lists ResultRow::*lists, const ResultRow& row) {
  if (lists == &ResultRow::metrics) return row.epochs;
  if (row.evaluations.empty()) return std::nullopt;
  return row.evaluations.begin()->second.size();
}

/// The values of a list. `name`: its column's.
std::vector<double> list_of(const Taken& taken, const std::string& name, Lists ResultRow::*lists) {
  const std::string of = lists == &ResultRow::metrics ? "epoch" : "evaluation";
  const std::optional<std::size_t> length = length_of(lists, taken.row);
  std::vector<double> values;
  std::size_t at = 0;
  for (const std::string& part : split(taken.field.text, ' ')) {
    const std::size_t star = part.find('*');
    const std::string number = part.substr(0, star);
    const auto times = star == std::string::npos ? std::optional<std::size_t>(1)
                                                 : parsed<std::size_t>(part.substr(star + 1));
    const auto value = number == kNoValue ? std::optional(kNoNumber) : number_of_text(number);
    if (!value || !times || *times == 0)
      taken.fail(concat(name, " has '", printable(part, 40),
                        "'; expected numbers such as 0.5, _ for none, and 0.5*3 for three"),
                 at);
    if (const std::size_t most = length.value_or(kMostNumbers); *times > most - values.size())
      taken.fail(concat(name, " has more than ", counted(most, "value"), ", one for each of the ",
                        of, "s"),
                 at);
    taken.numbers += *times;
    if (taken.numbers > kMostNumbers)
      taken.fail(concat("the file has more than ", grouped_text(static_cast<double>(kMostNumbers)),
                        " numbers"),
                 at);
    values.insert(values.end(), *times, *value);
    at += part.size() + 1;
  }
  if (length && values.size() != *length)
    taken.fail(
        concat(name, " has ", counted(values.size(), "value"), " of ", counted(*length, of)));
  return values;
}

/// A column: how its field is written, and how it is read.
struct Column {
  std::string name;
  int turn = 0;  ///< of a row, fields of turn 0 are read first, then those of 1 and 2
  std::function<std::string(const ResultRow&)> text;
  std::function<void(const Taken&)> take;
};

/// A field that holds a text, and the text of such a field. For the eyes of a spreadsheet
/// csv_text() puts a quotation mark before what begins a formula; one that is the text's own is
/// doubled, so that the first one never belongs to it.
std::string text_field(const std::string& text) {
  return csv_text(text.starts_with('\'') ? "'" + text : text);
}
std::string text_of(const CsvField& field) {
  return std::string(field.text.substr(field.text.starts_with('\'') ? 1 : 0));
}

Column text_column(const char* name, std::string ResultRow::*member) {
  return {.name = name,
          .text = [member](const ResultRow& row) { return text_field(row.*member); },
          .take = [member](const Taken& taken) { taken.row.*member = text_of(taken.field); }};
}

Column seconds_column(const char* name, double ResultRow::*member) {
  return {.name = name,
          .text = [member](const ResultRow& row) { return number_field(row.*member); },
          .take =
              [name, member](const Taken& taken) {
                if (taken.field.text.empty()) return;
                const auto value = number_of_text(taken.field.text);
                if (!value || !std::isfinite(*value) || *value < 0)
                  taken.fail(
                      concat(std::string_view(name), " is ", taken.shown(), "; expected seconds"));
                taken.row.*member = *value;
              }};
}

Column digest_column() {
  Column column = text_column("digest", &ResultRow::digest);
  column.take = [](const Taken& taken) {
    taken.row.digest = taken.field.text;
    if (taken.row.digest.size() != 16 ||
        taken.row.digest.find_first_not_of("0123456789abcdef") != std::string::npos)
      taken.fail(concat("digest is ", taken.shown(), "; expected 16 hexadecimal digits"));
  };
  return column;
}

Column state_column() {
  Column column = text_column("state", &ResultRow::state);
  column.take = [](const Taken& taken) {
    taken.row.state = taken.field.text;
    if (taken.row.state != "done" && taken.row.state != "diverged" && taken.row.state != "failed")
      taken.fail(concat("state is ", taken.shown(), "; expected done, diverged or failed"));
  };
  return column;
}

Column epochs_column() {
  return {.name = "epochs",
          .text = [](const ResultRow& row) { return std::to_string(row.epochs); },
          .take =
              [](const Taken& taken) {
                const auto epochs = parsed<std::size_t>(taken.field.text);
                if (!epochs || *epochs > kMostEpochs)
                  taken.fail(concat("epochs is ", taken.shown(), "; expected a whole number up to ",
                                    grouped_text(static_cast<double>(kMostEpochs))));
                taken.row.epochs = *epochs;
              }};
}

/// The columns that every file has.
std::vector<Column> fixed_columns() {
  return {digest_column(),
          text_column("label", &ResultRow::label),
          state_column(),
          text_column("why", &ResultRow::why),
          epochs_column(),
          seconds_column("wall_seconds", &ResultRow::wall_seconds),
          seconds_column("processor_seconds", &ResultRow::processor_seconds),
          text_column("processor", &ResultRow::processor),
          text_column("instruction_set", &ResultRow::instruction_set),
          text_column("pipewright", &ResultRow::version),
          text_column("commit", &ResultRow::commit),
          text_column(kStarted, &ResultRow::started),
          text_column("precision", &ResultRow::precision)};
}

Column setting_column(const std::string& key) {
  return {.name = key,
          .text =
              [key](const ResultRow& row) {
                const auto found = row.settings.find(key);
                return found == row.settings.end() ? std::string() : text_field(found->second);
              },
          .take =
              [key](const Taken& taken) {
                if (!taken.field.text.empty()) taken.row.settings[key] = text_of(taken.field);
              }};
}

std::vector<double> values_of(const Lists& lists, const std::string& metric) {
  const auto found = lists.find(metric);
  return found == lists.end() ? std::vector<double>() : found->second;
}

/// The values of all epochs, or of all evaluations inside the training.
Column list_column(Lists ResultRow::*lists, const std::string& metric) {
  const std::string name = concat(lists == &ResultRow::metrics ? kEach : kWithin, metric);
  return {.name = name,
          .turn = 1,
          .text = [=](const ResultRow& row) { return list_field(values_of(row.*lists, metric)); },
          .take =
              [=](const Taken& taken) {
                if (taken.field.text.empty()) return;
                std::vector<double> values = list_of(taken, name, lists);
                (taken.row.*lists)[metric] = std::move(values);
              }};
}

/// The last or the best value, which must be that of the list.
Column chosen_column(std::string_view prefix, const std::string& metric) {
  const std::string name = concat(prefix, metric);
  const std::string epoch(prefix.substr(0, prefix.size() - 1));
  const auto chosen = [epoch, metric](const ResultRow& row) {
    return value_at(epoch, metric, values_of(row.metrics, metric));
  };
  return {.name = name,
          .turn = 2,
          .text = [chosen](const ResultRow& row) { return number_field(chosen(row)); },
          .take =
              [=](const Taken& taken) {
                const double expected = chosen(taken.row);
                const auto given = taken.field.text.empty() ? std::optional(kNoNumber)
                                                            : number_of_text(taken.field.text);
                if (given && (*given == expected || (std::isnan(*given) && std::isnan(expected))))
                  return;
                taken.fail(concat(name, " is ", taken.shown(), ", but the ", epoch, " value of ",
                                  kEach, metric, " is ",
                                  std::isnan(expected) ? "none" : number_text(expected)));
              }};
}

Column column_named(const std::string& name) {
  for (Column& column : fixed_columns())
    if (column.name == name) return column;
  if (name.starts_with(kEach)) return list_column(&ResultRow::metrics, name.substr(kEach.size()));
  if (name.starts_with(kWithin))
    return list_column(&ResultRow::evaluations, name.substr(kWithin.size()));
  for (const std::string_view prefix : {kLast, kBest})
    if (name.starts_with(prefix)) return chosen_column(prefix, name.substr(prefix.size()));
  return setting_column(name);
}

/// The columns of a file's header.
std::vector<Column> header_columns(const CsvReader& reader) {
  const std::vector<std::string> names = reader.texts();
  const auto has = [&](const std::string& name) { return std::ranges::count(names, name) > 0; };
  // What another file holds is not shown.
  for (const Column& column : fixed_columns())
    if (column.name != kStarted && !has(column.name))
      reader.fail(1, concat("the header has no column '", column.name,
                            "'; expected rows of results, as `table --keep` writes them"));
  std::vector<Column> columns;
  for (const CsvField& field : reader.fields()) {
    const std::string name(field.text);
    if (name.empty() || printable(name) != name)
      reader.fail(field.column, "a column has no name that can be printed");
    if (std::ranges::count(names, name) > 1)
      reader.fail(field.column, concat("there are two columns '", name, "'"));
    columns.push_back(column_named(name));
  }
  for (const std::string& name : names)
    for (const std::string_view chosen : {kLast, kBest})
      if (const std::string list = concat(kEach, name.substr(std::min(name.size(), chosen.size())));
          name.starts_with(chosen) && !has(list))
        reader.fail(1, concat("there is a column '", name, "' and none '", list, "'"));
  return columns;
}

ResultRow read_row(const CsvReader& reader, const std::vector<Column>& columns,
                   std::size_t& numbers) {
  reader.expect_fields(columns.size());
  ResultRow row;
  for (const int turn : {0, 1, 2})
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].turn != turn) continue;
      const CsvField& field = reader.fields()[c];
      if (printable(field.text) != field.text)
        reader.fail(field.column, concat("'", columns[c].name, "' holds what cannot be printed"));
      columns[c].take({reader, field, row, numbers});
    }
  return row;
}

/// Numbers before texts, and by value.
int order_of(const std::string& a, const std::string& b) {
  const auto x = number_of_text(a), y = number_of_text(b);
  if (x && y && *x != *y) return *x < *y ? -1 : 1;
  if (x.has_value() != y.has_value()) return x ? -1 : 1;
  return a.compare(b);
}

bool comes_before(const ResultRow& a, const ResultRow& b, const std::set<std::string>& keys) {
  if (a.label != b.label) return a.label < b.label;
  const auto text = [](const ResultRow& row, const std::string& key) {
    const auto found = row.settings.find(key);
    return found == row.settings.end() ? std::string() : found->second;
  };
  for (const std::string& key : keys)
    if (const int order = order_of(text(a, key), text(b, key)); order != 0) return order < 0;
  return a.digest < b.digest;
}

}  // namespace

std::vector<ResultRow> read_result_rows(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMostBytes);
  CsvReader reader(text, file.string());
  std::vector<Column> columns;
  std::vector<ResultRow> rows;
  std::set<std::string> digests;
  std::size_t numbers = 0;
  while (reader.next()) {
    if (!reader.complete()) reader.fail(1, "the line is cut off: it does not end in a line feed");
    if (columns.empty()) {
      columns = header_columns(reader);
      continue;
    }
    rows.push_back(read_row(reader, columns, numbers));
    if (!digests.insert(rows.back().digest).second)
      reader.fail(1, concat("the digest ", rows.back().digest, " has a row already"));
  }
  if (columns.empty())
    throw Error(ErrorKind::Data,
                "is empty; expected rows of results, as `table --keep` writes them", file.string());
  return rows;
}

std::string result_rows_text(std::vector<ResultRow> rows) {
  std::set<std::string> keys, metrics, evaluated;
  for (const ResultRow& row : rows) {
    for (const auto& [key, text] : row.settings) keys.insert(key);
    for (const auto& [metric, values] : row.metrics) metrics.insert(metric);
    for (const auto& [column, values] : row.evaluations) evaluated.insert(column);
  }
  std::ranges::sort(
      rows, [&](const ResultRow& a, const ResultRow& b) { return comes_before(a, b, keys); });
  std::vector<Column> columns = fixed_columns();
  for (const std::string& key : keys) columns.push_back(setting_column(key));
  for (const std::string& metric : metrics) columns.push_back(chosen_column(kLast, metric));
  for (const std::string& metric : metrics)
    if (has_best(metric)) columns.push_back(chosen_column(kBest, metric));
  for (const std::string& metric : metrics)
    columns.push_back(list_column(&ResultRow::metrics, metric));
  for (const std::string& column : evaluated)
    columns.push_back(list_column(&ResultRow::evaluations, column));
  std::vector<std::string> fields;
  for (const Column& column : columns) fields.push_back(csv_text(column.name));
  std::string text = join(fields, ",") + "\n";
  for (const ResultRow& row : rows) {
    fields.clear();
    for (const Column& column : columns) fields.push_back(column.text(row));
    text += join(fields, ",") + "\n";
  }
  return text;
}

}  // namespace pipewright
