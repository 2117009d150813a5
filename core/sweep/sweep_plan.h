// SPDX-License-Identifier: Apache-2.0
/// The runs of a sweep. All are read and checked before the first one starts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/merge.h"
#include "core/records/run_record.h"

namespace pipewright {

/// What a sweep needs to know of a run before it starts.
struct PointExperiment {
  RunConfig resolved;         ///< document with all defaults and absolute paths
  std::string digest;         ///< digest of the configuration, as in run.json
  int cores = 1;              ///< cores that it keeps busy
  int processes = 0;          ///< processes that MPI starts; 0: a single process without MPI
  int gpus = 0;               ///< GPUs that give each worker on one a GPU of its own
  bool settled_late = false;  ///< the run itself measures what it records: cut, memory format
  bool on_cpus = false;       ///< all its workers are on the CPU
};

struct PlannedRun : PointExperiment {
  int point = 0;  ///< its number in the file, from 1
  std::string label;
  std::string title;  ///< unique: the label and what distinguishes the run from others of it
  Value varied;
  std::filesystem::path folder;
  std::string file;  ///< the experiment's file, see file_of()

  PointEntry entry() const { return {point, label, varied, file, {}}; }
};

/// The absolute path of a document's file: that which extends the others.
std::string file_of(const Value& document);

/// Reads every run of the document's sweep. Throws Error{Experiment} with the problems of all runs,
/// each once, with the titles of its runs unless all have it.
std::vector<PlannedRun> plan_sweep(const Value& document, const std::filesystem::path& out);

/// Prepares the run's folder: writes point.json and the experiment file for the run's process.
/// Returns the path of that file. Throws Error{Data}, and Error{Experiment} as claim() does.
std::filesystem::path write_run_inputs(const PlannedRun& run, bool overwrite);

/// Writes point.json (label and varied keys, for results.sqlite) for a run that its sweep has not
/// started. Throws Error{Data}.
void write_point(const std::filesystem::path& folder, const SweepPoint& point, int number);

/// Records of the planned runs from their folders so far, in order; the state is "missing" if there
/// is nothing. Configuration and digest are the planned ones, unless the folder says that the run
/// had others.
std::vector<RunRecord> records_of(const std::vector<PlannedRun>& runs);

/// Records of a document's sweep with results in `out`. A file without a sweep that was `run` into
/// `out` itself has that one record. A point that cannot be planned here, for example because a
/// plugin is missing, is an error only if its folder does not have the configuration that ran.
std::vector<RunRecord> sweep_records(const Value& document, const std::filesystem::path& out);

/// Titles of points: the label and what distinguishes the point from others of that label ("PD4
/// seed 2"); without labels its values ("pipedream stages 4 seed 2").
std::vector<std::string> run_titles(const std::vector<SweepPoint>& points);

}  // namespace pipewright
