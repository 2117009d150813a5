// SPDX-License-Identifier: Apache-2.0
/// Reads the experiments of many points of a sweep. Points that differ only in their seed are read
/// once: checking every option again for ten thousand seeds would take half a minute. Data sets are
/// asked once what their samples are.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/experiment/experiment.h"
#include "core/experiment/model_defaults.h"
#include "core/sweep/sweep_plan.h"

namespace pipewright {

/// A key of a document with the files that its texts are from, because paths are relative to them.
std::string key_of(const Value& document);

/// A key of all that defines the document's experiment except train.seed; none if the seed is
/// missing or invalid. It includes the files that texts are from, because paths are relative to
/// them.
std::optional<std::string> key_but_seed(const Value& document);

class PointReader {
 public:
  /// Returns the result of read_experiment() for the document, from the cache if possible. Throws
  /// its errors.
  PointExperiment read(const Value& document);

 private:
  std::map<std::string, PointExperiment> known_;  ///< by key_but_seed
  KnownForms forms_;
};

}  // namespace pipewright
