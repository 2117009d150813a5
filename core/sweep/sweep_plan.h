/// The runs of a sweep, all read and checked before the first one starts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/merge.h"
#include "core/records/run_record.h"

namespace pipewright {

struct PlannedRun {
  std::string label;
  std::string title;  ///< label and whatever else tells it from runs of the same label; unique
  Value varied;
  std::filesystem::path folder;
  RunConfig resolved;  ///< every default written out, paths absolute
  std::string digest;
  int cores = 1;              ///< it keeps busy
  int processes = 0;          ///< that MPI starts for it; 0: it is one process
  bool settled_late = false;  ///< the run itself decides on its balance and records that
};

/// Reads every run of the document's sweep. Throws Error{Experiment} with the problems of all
/// runs, each once, and in which run where not all have it.
std::vector<PlannedRun> plan_sweep(const Value& document, const std::filesystem::path& out);

/// Readies the run's folder: point.json, and the experiment file that its process is to be given,
/// whose path is returned. Throws Error{Data}, and Error{Experiment} as claim().
std::filesystem::path write_run_inputs(const PlannedRun& run, bool overwrite);

/// Leaves in the folder of a run that was not started by its sweep what the sweep would: label and
/// what varies, for results.sqlite. Throws Error{Data}.
void write_point(const std::filesystem::path& folder, const SweepPoint& point);

/// What the planned runs have left in their folders so far, in order; "missing" where there is
/// nothing. A run's configuration and digest are the planned ones, unless its folder says that it
/// ran with others.
std::vector<RunRecord> records_of(const std::vector<PlannedRun>& runs);

/// The same of a document's sweep with results in `out`. A file without a sweep that was `run` into
/// `out` itself has that one record. A point that cannot be planned here, for want of a plugin,
/// say, is an error only if its folder does not say what ran.
std::vector<RunRecord> sweep_records(const Value& document, const std::filesystem::path& out);

/// What to call each point: its label and what tells it from others of that label, "PD4 seed 2";
/// without labels its values, "pipedream stages 4 seed 2".
std::vector<std::string> run_titles(const std::vector<SweepPoint>& points);

}  // namespace pipewright
