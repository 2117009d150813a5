/// What a run folder tells about its run, read back for tables, the run store and resumed sweeps.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// One run's outcome, as its folder says.
struct RunRecord {
  std::filesystem::path folder;
  std::string label;   ///< of its point of the sweep; else the folder's name
  std::string state;   ///< done, failed, interrupted, running, missing
  std::string digest;  ///< of the configuration it ran with
  std::string error;   ///< why it failed
  Value varied;        ///< mapping of dotted key → value
  Value config;        ///< resolved experiment; Null when there is none
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

  bool done() const { return state == "done"; }
};

/// The record of a run folder (state "missing" when there is no run.json). A folder whose files
/// cannot be read is a failed run, with the reason as its error. Never throws for what it finds.
RunRecord read_run(const std::filesystem::path& folder);

/// The records of all run folders directly in a sweep's folder, by name.
std::vector<RunRecord> read_runs(const std::filesystem::path& sweep_folder);

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
