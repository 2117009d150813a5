// SPDX-License-Identifier: Apache-2.0
/// Published numbers to show beside ours, from a CSV file with a header.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/csv.h"
#include "core/config/options.h"
#include "core/records/run_record.h"
#include "core/tables/table_spec.h"

namespace pipewright {

using ColumnTexts = std::vector<std::pair<std::string, std::string>>;  ///< column, text

/// The texts that a run has for the columns that are matched.
ColumnTexts texts_of(const ColumnKeys& match, const RunRecord& run);

struct PublishedNumbers : CsvTable {
  std::filesystem::path file;

  /// Whether these columns and those that are matched exist. Records a problem for each that does
  /// not, in which `what` names the option.
  bool has(std::vector<TableKey> wanted, const ColumnKeys& match, const char* what,
           Problems& problems) const;
  /// Indices of the rows whose columns have these texts, compared as in find(). Requires all
  /// columns to exist.
  std::vector<std::size_t> matching(const ColumnTexts& wanted) const;
  /// The field `value` of the row whose columns have these texts; nullopt if there is no such row
  /// or the field is empty. Texts are compared without case, '-', '_' and spaces ("ResNet-50"
  /// equals resnet50), numbers as numbers. Throws Error{Experiment} if rows with different values
  /// match. Requires all columns to exist.
  std::optional<std::string> find(const ColumnTexts& wanted, const std::string& value) const;
};

struct Table;

/// Adds to each cell of a table the published number of its runs, if they agree on one. Records
/// problems with the file's columns and rows.
void add_published(Table& table, const TablePublished& wanted, const std::vector<RunRecord>& runs,
                   Problems& problems);

/// Reads a CSV file, whose fields may be quoted (RFC 4180). Throws Error{Data} with its place.
PublishedNumbers read_published(const std::filesystem::path& file);

}  // namespace pipewright
