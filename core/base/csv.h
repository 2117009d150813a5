// SPDX-License-Identifier: Apache-2.0
/// Reads comma-separated text as RFC 4180 describes it: a field may stand in double quotes, where
/// commas and line breaks belong to it and a doubled quote is one. Lines end in "\n" or "\r\n"; a
/// byte order mark before the first is skipped. csv_text() in markup.h writes a field.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace pipewright {

struct CsvField {
  std::string_view text;   ///< without its quotes
  std::size_t column = 1;  ///< of its first byte, from 1, counted from the row's beginning
};

struct CsvDialect {
  char separator = ',';
  /// Spaces around a field, or around its quotes, do not belong to it, and a quote within a field
  /// without quotes is a character as any other.
  bool relaxed = false;
};

/// Reads the rows of a text, one after another. The text must outlive the reader.
class CsvReader {
 public:
  /// `line`: the number of the text's first line in the file, which errors name.
  CsvReader(std::string_view text, std::string file, CsvDialect dialect = {}, std::size_t line = 1);

  /// Reads the next row; false at the end of the text. Throws Error{Data} with file, line and
  /// column for a quote that is not closed, that stands within a field, or that something other
  /// than a separator follows, and for more than 2^20 fields.
  bool next();

  /// The same in a table: the first row that is not blank gives `columns`, which must be empty
  /// before; blank lines are left out, and each row behind it must have as many fields, else
  /// Error{Data}.
  bool next_of_table(std::vector<std::string>& columns);

  /// The fields of the row, valid until the next is read; none of a blank line.
  const std::vector<CsvField>& fields() const { return fields_; }
  std::vector<std::string> texts() const;
  /// The line in which the row begins, from 1.
  std::size_t line() const { return line_; }
  /// Whether a line break follows the row: one that is still being written has none.
  bool complete() const { return complete_; }

  /// Throws Error{Data} unless the row has so many fields, as the header has.
  void expect_fields(std::size_t count) const;
  /// Throws Error{Data} at a column of the row.
  [[noreturn]] void fail(std::size_t column, const std::string& message) const;

 private:
  void find_end(std::size_t from);
  std::size_t add_field(std::size_t begin);
  std::size_t add_quoted(std::size_t quote);
  std::size_t behind_spaces(std::size_t at) const;
  void add(std::size_t begin, std::string_view text);

  std::string_view text_;
  std::string file_;
  CsvDialect dialect_;
  std::size_t line_ = 0, next_line_;  ///< the row's first line, and the next row's
  std::size_t begin_ = 0, end_ = 0;   ///< of the row in the text, without its line break
  std::size_t next_begin_ = 0;        ///< of the next row
  bool complete_ = true;
  std::vector<CsvField> fields_;
  std::list<std::string> unescaped_;  ///< texts of fields with doubled quotes
};

/// A whole text with a header.
struct CsvTable {
  std::vector<std::string> columns;            ///< none of a text without rows
  std::vector<std::vector<std::string>> rows;  ///< each has as many fields as `columns`
  std::vector<std::size_t> lines;              ///< in which each row begins, from 1

  /// The number of a column; that of columns if there is no such column.
  std::size_t index_of(std::string_view column) const;
};

/// Reads a table and leaves blank lines out. Throws what CsvReader throws, and Error{Data} for a
/// row that has other fields than the header.
CsvTable read_csv(std::string_view text, const std::string& file);

}  // namespace pipewright
