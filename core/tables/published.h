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

namespace pipewright {

struct PublishedNumbers : CsvTable {
  std::filesystem::path file;

  /// Whether the column exists. Otherwise records a problem in which `what` names the option.
  bool has(const std::string& column, const Place& place, const char* what,
           Problems& problems) const;
  /// Indices of the rows whose columns have these texts, compared as in find(). Requires all
  /// columns to exist.
  std::vector<std::size_t> matching(
      const std::vector<std::pair<std::string, std::string>>& wanted) const;
  /// The field `value` of the row whose columns have these texts; nullopt if there is no such row
  /// or the field is empty. Texts are compared without case, '-', '_' and spaces ("ResNet-50"
  /// equals resnet50), numbers as numbers. Throws Error{Experiment} if rows with different values
  /// match. Requires all columns to exist.
  std::optional<std::string> find(const std::vector<std::pair<std::string, std::string>>& wanted,
                                  const std::string& value) const;
};

struct Table;
struct TablePublished;

/// Adds to each cell of a table the published number of its runs, if they agree on one. Records
/// problems with the file's columns and rows.
void add_published(Table& table, const TablePublished& wanted, const std::vector<RunRecord>& runs,
                   Problems& problems);

/// Reads a CSV file, whose fields may be quoted (RFC 4180). Throws Error{Data} with its place.
PublishedNumbers read_published(const std::filesystem::path& file);

}  // namespace pipewright
