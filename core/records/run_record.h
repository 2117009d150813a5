/// What a run folder tells about its run, read back for tables, the run store and resumed sweeps.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/records/run_config.h"

namespace pipewright {

/// How a run stands.
struct RunOutcome {
  std::string state;   ///< done, failed, interrupted, running, missing
  std::string name;    ///< of its experiment
  std::string digest;  ///< of the configuration it ran with
  std::string error;   ///< why it failed

  bool done() const { return state == "done"; }
};

/// What run.json says, and of a run that could not say how it ended, point.json; state "missing"
/// without either. A folder whose files cannot be read holds a failed run, with the reason as its
/// error. Never throws for what it finds.
RunOutcome read_outcome(const std::filesystem::path& folder);

/// One run's outcome and numbers, as its folder says.
struct RunRecord : RunOutcome {
  std::filesystem::path folder;
  std::string label;  ///< of its point of the sweep; else the folder's name
  Value varied;       ///< mapping of dotted key → value
  RunConfig config;   ///< resolved experiment; not known when there is none
  /// Of epochs.csv; then, of a pipeline over several workers, what traffic.csv says of the whole
  /// training: sent_ratio (to the bytes uncompressed), sent_mib (a mini-batch, all links between
  /// stages together), required_mib_per_s (to keep the training's pace) and codec_share (of its
  /// time, in sum over both ends); of replicas, reduced_ratio (what they sum of their gradients to
  /// those) and reduced_mib (a mini-batch, what all replicas of all stages put into sums).
  std::vector<std::string> columns;
  std::vector<std::vector<double>> epochs;  ///< rows (NaN where empty)
  /// What a simulation says of it, finished or not: "modelled_…" and a number (add_modelled).
  std::vector<std::pair<std::string, double>> modelled;
  double modelled_epoch_hours = 0;  ///< 0: not known
};

/// The record of a run folder whose label, varied values and configuration are known to the caller
/// and left empty. Never throws for what it finds, either.
RunRecord read_numbers(const std::filesystem::path& folder);

/// read_numbers with label, varied values and configuration as point.json and experiment.yaml say.
RunRecord read_run(const std::filesystem::path& folder);

/// Whether a run or a sweep has left its files there. No link to a folder is one.
bool is_run_folder(const std::filesystem::directory_entry& entry);

/// What the sweep knows of a run, kept in its folder as point.json. `error` is set when the run's
/// process ended without saying so itself (killed, or never started); a later state "done" wins.
void write_point(const std::filesystem::path& folder, const std::string& label, const Value& varied,
                 const std::string& error = {});

/// The number a table cell averages: `metric` at the "last" or "best" epoch that has it ("best":
/// the largest, or smallest where smaller_is_better). nullopt unless the run is done and has one;
/// what is modelled, every run has.
std::optional<double> metric_of(const RunRecord& run, const std::string& metric,
                                const std::string& epoch);

/// "modelled_hours" and its like.
bool is_modelled(const std::string& metric);

/// Metrics that end in "loss", "seconds", "ratio" and the like.
bool smaller_is_better(const std::string& metric);

}  // namespace pipewright
