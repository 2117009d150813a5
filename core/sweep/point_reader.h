/// Experiments of many points of a sweep, of which those that differ in their seed only are read
/// once: checking every option of ten thousand seeds again would take half a minute.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/experiment/experiment.h"
#include "core/records/run_config.h"

namespace pipewright {

/// What a sweep needs to know of a run before it starts.
struct PointExperiment {
  RunConfig resolved;
  std::string digest;         ///< of its configuration, as run.json will have it
  int cores = 1;              ///< it keeps busy
  int processes = 0;          ///< that MPI starts for it; 0: it is one process
  bool settled_late = false;  ///< the run itself decides on its balance and records that
};

/// Everything in a document that decides what its experiment is, but train.seed; none where the
/// seed is missing or no seed. Texts go with the file they stand in, to which paths are relative.
std::optional<std::string> key_but_seed(const Value& document);

class PointReader {
 public:
  /// What read_experiment() says of the document, whose errors are thrown.
  PointExperiment read(const Value& document);

 private:
  std::map<std::string, PointExperiment> known_;  ///< by key_but_seed
};

}  // namespace pipewright
