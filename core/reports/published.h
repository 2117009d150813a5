/// Numbers that others have published, to stand beside ours: a CSV file with a header.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

struct PublishedNumbers {
  std::filesystem::path file;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`

  /// Records, and returns false for, a column that is not there; `what` names the option.
  bool has(const std::string& column, const Place& place, const char* what,
           Problems& problems) const;
  /// Indices of the rows whose columns have these texts, compared as find() says. Requires all
  /// columns to exist.
  std::vector<std::size_t> matching(
      const std::vector<std::pair<std::string, std::string>>& wanted) const;
  /// Of a column; requires that it exists.
  std::size_t index_of(const std::string& column) const;

  /// The `value` of the row whose columns have these texts; nullopt without such a row, or with
  /// nothing written there. Texts are compared without case, '-', '_' and spaces ("ResNet-50" is
  /// resnet50), numbers as numbers. Throws Error{Experiment} when rows with different values fit.
  /// Requires all columns to exist.
  std::optional<std::string> find(const std::vector<std::pair<std::string, std::string>>& wanted,
                                  const std::string& value) const;
};

/// None for texts that are no numbers, such as "OOM".
std::optional<double> published_number(const std::string& text);

/// Reads a CSV file with quoted fields where needed (RFC 4180). Throws Error{Data} with its place.
PublishedNumbers read_published(const std::filesystem::path& file);

}  // namespace pipewright
