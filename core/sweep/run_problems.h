// SPDX-License-Identifier: Apache-2.0
/// Collects problems of many runs, most of which usually have the same ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace pipewright {

/// Each problem is reported once, with the titles of its runs unless all runs have it.
class RunProblems {
 public:
  void add(const Error& error, const std::string& title);
  /// Throws an Error of the first problem's kind with one line per problem. `runs`: number of all
  /// runs.
  void throw_if_any(std::size_t runs) const;

 private:
  ErrorKind kind_ = ErrorKind::Experiment;
  std::vector<std::string> lines_;
  std::map<std::string, std::vector<std::string>> titles_;  // runs of each line
};

}  // namespace pipewright
