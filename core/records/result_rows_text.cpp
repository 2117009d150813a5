// SPDX-License-Identifier: Apache-2.0
// How rows of results are written and read as CSV.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/markup.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "core/records/result_rows.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::string_view kLast = "last.", kBest = "best.", kEach = "each.";
constexpr std::string_view kNoValue = "_";
constexpr const char* kStarted = "started";  // a column that files of earlier versions lack
constexpr std::size_t kMostEpochs = 1'000'000, kMostNumbers = 10'000'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;

/// A column that every file is written with, and the member that it is.
struct FixedText {
  const char* name;
  std::string ResultRow::*member;
};
struct FixedNumber {
  const char* name;
  double ResultRow::*member;
};
constexpr std::array kTexts{FixedText{"processor", &ResultRow::processor},
                            FixedText{"instruction_set", &ResultRow::instruction_set},
                            FixedText{"pipewright", &ResultRow::version},
                            FixedText{"commit", &ResultRow::commit},
                            FixedText{kStarted, &ResultRow::started},
                            FixedText{"precision", &ResultRow::precision}};
constexpr std::array kNumbers{FixedNumber{"wall_seconds", &ResultRow::wall_seconds},
                              FixedNumber{"processor_seconds", &ResultRow::processor_seconds}};

std::vector<std::string> fixed_columns() {
  std::vector<std::string> names{"digest", "label", "state", "why", "epochs"};
  for (const FixedNumber& column : kNumbers) names.emplace_back(column.name);
  for (const FixedText& column : kTexts) names.emplace_back(column.name);
  return names;
}

std::string number_field(double value) {
  return std::isnan(value) ? std::string() : number_text(value);
}

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
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole && !std::isnan(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::size_t> count_of_text(std::string_view text) {
  std::size_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole && !text.empty() ? std::optional(value) : std::nullopt;
}

/// A file's row while it is read: fields with their columns in the line, from 1.
struct Fields {
  std::vector<std::string> texts;
  std::vector<std::size_t> columns;
};

class RowReader {
 public:
  explicit RowReader(std::filesystem::path file) : file_(std::move(file)) {}

  std::vector<ResultRow> read() {
    const std::string text = read_file(file_, kMostBytes);
    std::vector<ResultRow> rows;
    std::set<std::string> digests;
    std::string_view rest = text;
    while (!rest.empty()) {
      ++line_;
      const std::size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      if (end == std::string_view::npos)
        fail(line.size() + 1, "the line is cut off: it does not end in a line feed");
      rest.remove_prefix(end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line_ == 1) {
        read_header(line);
        continue;
      }
      rows.push_back(row_of_line(line));
      if (!digests.insert(rows.back().digest).second)
        fail(1, concat("the digest ", rows.back().digest, " has a row already"));
    }
    if (line_ == 0)
      throw Error(ErrorKind::Data,
                  "is empty; expected rows of results, as `table --keep` writes them",
                  file_.string());
    return rows;
  }

 private:
  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    throw Error(ErrorKind::Data, message, concat(file_.string(), ":", line_, ":", column));
  }

  /// Splits a line strictly: what follows a closing quote, or a quote within a field, is an error.
  Fields fields_of(std::string_view line) const {
    Fields fields;
    for (std::size_t at = 0;; ++at) {
      fields.columns.push_back(at + 1);
      std::string& text = fields.texts.emplace_back();
      if (at < line.size() && line[at] == '"') {
        for (++at;; ++at) {
          if (at >= line.size()) fail(fields.columns.back(), "a quote is not closed in its line");
          if (line[at] != '"')
            text += line[at];
          else if (at + 1 < line.size() && line[at + 1] == '"')
            text += line[++at];
          else
            break;
        }
        ++at;
        if (at < line.size() && line[at] != ',')
          fail(at + 1, "a comma is missing behind a closing quote");
      } else {
        for (; at < line.size() && line[at] != ','; ++at) {
          if (line[at] == '"') fail(at + 1, "a quote stands within a field without quotes");
          text += line[at];
        }
      }
      if (at >= line.size()) return fields;
    }
  }

  void read_header(std::string_view line) {
    const Fields fields = fields_of(line);
    columns_ = fields.texts;
    // What another file holds is not shown.
    for (const std::string& name : fixed_columns())
      if (name != kStarted && std::ranges::count(columns_, name) == 0)
        fail(1, concat("the header has no column '", name,
                       "'; expected rows of results, as `table --keep` writes them"));
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].empty() || printable(columns_[c]) != columns_[c])
        fail(fields.columns[c], "a column has no name that can be printed");
      if (std::ranges::count(columns_, columns_[c]) > 1)
        fail(fields.columns[c], concat("there are two columns '", columns_[c], "'"));
    }
    for (const std::string& name : columns_)
      for (const std::string_view derived : {kLast, kBest})
        if (name.starts_with(derived) &&
            std::ranges::count(columns_, concat(kEach, name.substr(derived.size()))) == 0)
          fail(1, concat("there is a column '", name, "' and none '", kEach,
                         name.substr(derived.size()), "'"));
  }

  ResultRow row_of_line(std::string_view line) {
    const Fields fields = fields_of(line);
    if (fields.texts.size() != columns_.size())
      fail(1, concat("has ", counted(fields.texts.size(), "field"), ", but the header has ",
                     columns_.size()));
    ResultRow row;
    const auto each_field = [&](const auto& read) {
      for (std::size_t c = 0; c < columns_.size(); ++c)
        read(columns_[c], fields.texts[c], fields.columns[c]);
    };
    each_field([&](const std::string& name, const std::string& text, std::size_t column) {
      if (printable(text) != text)
        fail(column, concat("'", name, "' holds what cannot be printed"));
      read_fixed(name, text, column, row);
    });
    each_field([&](const std::string& name, const std::string& text, std::size_t column) {
      if (name.starts_with(kEach) && !text.empty())
        row.metrics[name.substr(kEach.size())] = list_of(name, text, column, row.epochs);
    });
    each_field([&](const std::string& name, const std::string& text, std::size_t column) {
      check_derived(name, text, column, row);
    });
    return row;
  }

  void read_fixed(const std::string& name, const std::string& text, std::size_t column,
                  ResultRow& row) const {
    if (name == "digest") {
      const bool digits = text.find_first_not_of("0123456789abcdef") == std::string::npos;
      if (text.size() != 16 || !digits)
        fail(column,
             concat("digest is '", printable(text, 40), "'; expected 16 hexadecimal digits"));
      row.digest = text;
    } else if (name == "label") {
      row.label = text;
    } else if (name == "state") {
      if (text != "done" && text != "diverged" && text != "failed")
        fail(column,
             concat("state is '", printable(text, 40), "'; expected done, diverged or failed"));
      row.state = text;
    } else if (name == "why") {
      row.why = text;
    } else if (name == "epochs") {
      const auto epochs = count_of_text(text);
      if (!epochs || *epochs > kMostEpochs)
        fail(column, concat("epochs is '", printable(text, 40), "'; expected a whole number up to ",
                            grouped_text(static_cast<double>(kMostEpochs))));
      row.epochs = *epochs;
    } else {
      read_known(name, text, column, row);
    }
  }

  /// The columns of kNumbers and kTexts, and settings.
  void read_known(const std::string& name, const std::string& text, std::size_t column,
                  ResultRow& row) const {
    for (const FixedNumber& fixed : kNumbers) {
      if (name != fixed.name) continue;
      if (text.empty()) return;
      const auto value = number_of_text(text);
      if (!value || !std::isfinite(*value) || *value < 0)
        fail(column, concat(name, " is '", printable(text, 40), "'; expected seconds"));
      row.*fixed.member = *value;
      return;
    }
    for (const FixedText& fixed : kTexts)
      if (name == fixed.name) {
        row.*fixed.member = text;
        return;
      }
    if (!name.starts_with(kLast) && !name.starts_with(kBest) && !name.starts_with(kEach) &&
        !text.empty())
      row.settings[name] = text;
  }

  std::vector<double> list_of(const std::string& name, const std::string& text, std::size_t column,
                              std::size_t epochs) {
    std::vector<double> values;
    std::size_t at = 0;
    for (const std::string& part : split(text, ' ')) {
      const std::size_t star = part.find('*');
      const std::string number = part.substr(0, star);
      const auto times = star == std::string::npos ? std::optional<std::size_t>(1)
                                                   : count_of_text(part.substr(star + 1));
      const auto value = number == kNoValue ? std::optional(kNoNumber) : number_of_text(number);
      if (!value || !times || *times == 0)
        fail(column + at,
             concat(name, " has '", printable(part, 40),
                    "'; expected numbers such as 0.5, _ for none, and 0.5*3 for three"));
      if (*times > epochs - values.size())
        fail(column + at, concat(name, " has more than ", counted(epochs, "value"),
                                 ", one for each of the epochs"));
      numbers_ += *times;
      if (numbers_ > kMostNumbers)
        fail(column + at, concat("the file has more than ",
                                 grouped_text(static_cast<double>(kMostNumbers)), " numbers"));
      values.insert(values.end(), *times, *value);
      at += part.size() + 1;
    }
    if (values.size() != epochs)
      fail(column, concat(name, " has ", counted(values.size(), "value"), " of ",
                          counted(epochs, "epoch")));
    return values;
  }

  /// The last and the best value must be those of the list.
  void check_derived(const std::string& name, const std::string& text, std::size_t column,
                     const ResultRow& row) const {
    if (!name.starts_with(kLast) && !name.starts_with(kBest)) return;
    const std::string epoch = name.substr(0, kLast.size() - 1);
    const std::string metric = name.substr(kLast.size());
    const auto found = row.metrics.find(metric);
    const std::vector<double> none;
    const std::vector<double>& values = found == row.metrics.end() ? none : found->second;
    const double expected = value_at(epoch, metric, values);
    const auto given = text.empty() ? std::optional(kNoNumber) : number_of_text(text);
    const bool same = given && (*given == expected || (std::isnan(*given) && std::isnan(expected)));
    if (!same)
      fail(column, concat(name, " is '", printable(text, 40), "', but the ", epoch, " value of ",
                          kEach, metric, " is ",
                          std::isnan(expected) ? std::string("none") : number_text(expected)));
  }

  std::filesystem::path file_;
  std::size_t line_ = 0, numbers_ = 0;
  std::vector<std::string> columns_;
};

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

std::string line_of_row(const ResultRow& row, const std::set<std::string>& keys,
                        const std::set<std::string>& metrics) {
  std::vector<std::string> fields{row.digest, csv_text(row.label), row.state, csv_text(row.why),
                                  std::to_string(row.epochs)};
  for (const FixedNumber& column : kNumbers) fields.push_back(number_field(row.*column.member));
  for (const FixedText& column : kTexts) fields.push_back(csv_text(row.*column.member));
  for (const std::string& key : keys) {
    const auto found = row.settings.find(key);
    fields.push_back(found == row.settings.end() ? std::string() : csv_text(found->second));
  }
  const auto values_of = [&](const std::string& metric) {
    const auto found = row.metrics.find(metric);
    return found == row.metrics.end() ? std::vector<double>() : found->second;
  };
  for (const std::string& metric : metrics)
    fields.push_back(number_field(value_at("last", metric, values_of(metric))));
  for (const std::string& metric : metrics)
    if (has_best(metric))
      fields.push_back(number_field(value_at("best", metric, values_of(metric))));
  for (const std::string& metric : metrics) fields.push_back(list_field(values_of(metric)));
  return join(fields, ",") + "\n";
}

}  // namespace

std::vector<ResultRow> read_result_rows(const std::filesystem::path& file) {
  return RowReader(file).read();
}

std::string result_rows_text(std::vector<ResultRow> rows) {
  std::set<std::string> keys, metrics;
  for (const ResultRow& row : rows) {
    for (const auto& [key, text] : row.settings) keys.insert(key);
    for (const auto& [metric, values] : row.metrics) metrics.insert(metric);
  }
  std::ranges::sort(
      rows, [&](const ResultRow& a, const ResultRow& b) { return comes_before(a, b, keys); });
  std::vector<std::string> header = fixed_columns();
  for (const std::string& key : keys) header.push_back(csv_text(key));
  for (const std::string& metric : metrics) header.push_back(csv_text(concat(kLast, metric)));
  for (const std::string& metric : metrics)
    if (has_best(metric)) header.push_back(csv_text(concat(kBest, metric)));
  for (const std::string& metric : metrics) header.push_back(csv_text(concat(kEach, metric)));
  std::string text = join(header, ",") + "\n";
  for (const ResultRow& row : rows) text += line_of_row(row, keys, metrics);
  return text;
}

}  // namespace pipewright
