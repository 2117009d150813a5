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
#include "core/records/run_config.h"

namespace pipewright {

/// What a sweep needs to know of a run before it starts.
struct PointExperiment {
  RunConfig resolved;
  std::string digest;         ///< digest of the configuration, as in run.json
  int cores = 1;              ///< cores that it keeps busy
  int processes = 0;          ///< processes that MPI starts; 0: a single process without MPI
  int gpus = 0;               ///< GPUs that give each worker on one a GPU of its own
  bool settled_late = false;  ///< the run itself measures what it records: cut, memory format
  bool on_cpus = false;       ///< all its workers are on the CPU
};

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
