// SPDX-License-Identifier: Apache-2.0
#include "core/base/csv.h"

#include <algorithm>
#include <utility>

#include "core/base/error_at.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kMostFields = 1 << 20;  // of a row

/// The text between quotes, with every doubled quote as one.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '"') ++i;
  }
  return out;
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string file, CsvDialect dialect, std::size_t line)
    : text_(text), file_(std::move(file)), dialect_(dialect), next_line_(line) {
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::next() {
  if (next_begin_ >= text_.size()) return false;
  fields_.clear();
  unescaped_.clear();
  line_ = next_line_++;
  begin_ = next_begin_;
  find_end(begin_);
  if ((dialect_.relaxed ? behind_spaces(begin_) : begin_) == end_) return true;
  for (std::size_t at = begin_; at <= end_;) at = add_field(at) + 1;
  return true;
}

bool CsvReader::next_of_table(std::vector<std::string>& columns) {
  while (next()) {
    if (fields_.empty()) continue;
    if (!columns.empty()) {
      expect_fields(columns.size());
      return true;
    }
    columns = texts();
  }
  return false;
}

std::vector<std::string> CsvReader::texts() const {
  std::vector<std::string> texts;
  for (const CsvField& field : fields_) texts.emplace_back(field.text);
  return texts;
}

void CsvReader::expect_fields(std::size_t count) const {
  if (fields_.size() != count)
    fail(1, concat("has ", counted(fields_.size(), "field"), ", but the header has ", count));
}

void CsvReader::fail(std::size_t column, const std::string& message) const {
  throw data_error(concat(file_, ":", line_, ":", column), message);
}

/// Finds the line break at or behind a position of the row.
void CsvReader::find_end(std::size_t from) {
  end_ = std::min(text_.find('\n', from), text_.size());
  complete_ = end_ < text_.size();
  next_begin_ = end_ + 1;
  if (end_ > from && text_[end_ - 1] == '\r') --end_;
}

std::size_t CsvReader::behind_spaces(std::size_t at) const {
  while (at < end_ && text_[at] == ' ') ++at;
  return at;
}

void CsvReader::add(std::size_t begin, std::string_view text) {
  if (fields_.size() == kMostFields)
    fail(begin - begin_ + 1, concat("has more than ", kMostFields, " fields"));
  fields_.push_back({text, begin - begin_ + 1});
}

/// Adds the field that begins there, and returns where it ends.
std::size_t CsvReader::add_field(std::size_t begin) {
  const std::size_t first = dialect_.relaxed ? behind_spaces(begin) : begin;
  if (first < end_ && text_[first] == '"') return add_quoted(first);
  const std::string_view row = text_.substr(0, end_);
  const std::size_t end = std::min(row.find(dialect_.separator, begin), end_);
  const std::string_view text = row.substr(begin, end - begin);
  if (dialect_.relaxed) {
    add(std::min(first, end), trimmed(text));
  } else {
    if (const std::size_t quote = text.find('"'); quote != std::string_view::npos)
      fail(begin + quote - begin_ + 1, "a quote stands within a field without quotes");
    add(begin, text);
  }
  return end;
}

std::size_t CsvReader::add_quoted(std::size_t quote) {
  const std::size_t first = quote + 1;
  std::size_t closing = text_.find('"', first);
  bool doubled = false;
  while (closing < text_.size() - 1 && text_[closing + 1] == '"') {
    doubled = true;
    closing = text_.find('"', closing + 2);
  }
  if (closing == std::string_view::npos) fail(quote - begin_ + 1, "a quote is not closed");
  const std::string_view text = text_.substr(first, closing - first);
  if (closing > end_) {  // the field holds line breaks
    next_line_ += static_cast<std::size_t>(std::ranges::count(text, '\n'));
    find_end(closing + 1);
  }
  add(quote, doubled ? unescaped_.emplace_back(unescaped(text)) : text);
  const std::size_t end = dialect_.relaxed ? behind_spaces(closing + 1) : closing + 1;
  if (end < end_ && text_[end] != dialect_.separator)
    fail(end - begin_ + 1, "a separator is missing behind a closing quote");
  return end;
}

std::size_t CsvTable::index_of(std::string_view column) const {
  return static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin());
}

CsvTable read_csv(std::string_view text, const std::string& file) {
  CsvTable table;
  CsvReader reader(text, file);
  while (reader.next_of_table(table.columns)) {
    table.rows.push_back(reader.texts());
    table.lines.push_back(reader.line());
  }
  return table;
}

}  // namespace pipewright
