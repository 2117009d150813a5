/// Problems of many runs; most often all runs have the same ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace pipewright {

/// Each problem is told once, with the runs that have it unless all do.
class RunProblems {
 public:
  void add(const Error& error, const std::string& title);
  /// Throws the first one's kind with all lines. `runs`: how many there are.
  void throw_if_any(std::size_t runs) const;

 private:
  ErrorKind kind_ = ErrorKind::Experiment;
  std::vector<std::string> lines_;
  std::map<std::string, std::vector<std::string>> titles_;  // of each line
};

}  // namespace pipewright
