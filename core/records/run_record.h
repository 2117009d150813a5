// SPDX-License-Identifier: Apache-2.0
/// Records of runs, read from run folders for tables, the run store and resumed sweeps.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// The state of a run.
struct RunOutcome {
  std::string state;   ///< done, failed, interrupted, running, missing
  std::string name;    ///< name of its experiment
  std::string digest;  ///< digest of the configuration that ran
  std::string error;   ///< why it failed
  /// As run.json has them, "2026-09-25T10:00:00Z"; empty: not recorded.
  std::string started, finished;
  int exit_code = 0;  ///< of the run that failed; 0: it has not recorded one
  std::string fault;  ///< why its files cannot be read, with the file; "": they can
  Value contents;     ///< option that names a file → digest of the file; empty: not recorded

  bool done() const { return state == "done"; }
  /// Whether it failed because a loss or a weight was NaN or infinite.
  bool diverged() const;
};

/// Reads the outcome from run.json or, for a run that could not record its end, from point.json;
/// the state is "missing" without either, and "interrupted" of a run that neither has recorded its
/// end nor holds the lock of its folder. If files cannot be read, the run counts as failed, with
/// the reason as its error and its fault. The content of a folder never causes an exception.
RunOutcome read_outcome(const std::filesystem::path& folder);

/// The resolved experiment of one run of a sweep. Runs that differ only in their seed share one in
/// memory; ten thousand copies would take 400 MB. Cheap to copy. Every function except known()
/// requires known().
class RunConfig {
 public:
  RunConfig() = default;  ///< not known
  // NOLINTNEXTLINE(google-explicit-constructor): a Value stands for itself, known
  RunConfig(Value resolved) : shared_(std::make_shared<const Value>(std::move(resolved))) {}

  bool known() const { return shared_ != nullptr; }
  /// The value at a dotted path, if there is one.
  std::optional<Value> find_path(std::string_view dotted) const;
  /// The whole document.
  Value whole() const;
  /// The same experiment with another train.seed, sharing everything else. Requires that it has a
  /// seed.
  RunConfig with_seed(std::int64_t seed) const;
  /// The whole document, except that train.seed may be another run's; for values that do not depend
  /// on it.
  const Value& of_any_seed() const { return *shared_; }

 private:
  std::shared_ptr<const Value> shared_;
  std::optional<std::int64_t> seed_;  ///< empty: use the seed in shared_
};

/// The outcome and numbers of one run.
struct RunRecord : RunOutcome {
  std::filesystem::path folder;
  int point = 0;      ///< its number in the sweep's file, from 1; 0: not known
  std::string label;  ///< label of its point of the sweep, or the folder's name
  Value varied;       ///< mapping of dotted key → value
  RunConfig config;   ///< resolved experiment, if known
  /// Columns of epochs.csv. For pipelines over several workers columns from traffic.csv follow,
  /// about the whole training: sent_ratio (sent bytes over uncompressed ones), sent_mib (per
  /// mini-batch, all links between stages together), required_mib_per_s (at the speed of the
  /// training) and codec_share (coding seconds of both ends over training seconds). With replicas:
  /// reduced_ratio (bytes put into sums over bytes of gradients) and reduced_mib (per mini-batch,
  /// all replicas of all stages together).
  std::vector<std::string> columns;
  /// Of a run that has not begun: columns that it would have if `metrics` of its experiment asked
  /// for them.
  std::vector<std::string> unasked;
  std::vector<std::vector<double>> epochs;  ///< rows; NaN for empty fields
  /// Column of evaluations.csv → its values, one for each evaluation inside the training.
  std::map<std::string, std::vector<double>> evaluations;
  /// Results of a simulation of the run, finished or not: names "modelled_…" and numbers (see
  /// add_modelled()).
  std::vector<std::pair<std::string, double>> modelled;
  double modelled_epoch_hours = 0;  ///< of a whole epoch; 0: unknown
  double modelled_run_hours = 0;    ///< of all its epochs, of which the last may be cut short
  /// Of a run that is done: steps_to and its kin (core/tables/time_to.h); infinite: not reached.
  std::vector<std::pair<std::string, double>> times_to;

  /// Where a name stands in `columns`; none: it is none of them.
  std::optional<std::size_t> column(std::string_view name) const;
  /// The values of a column, one for each row of `epochs`; none without such a column.
  std::vector<double> values_of(std::string_view name) const;
  /// The value of a dotted key in the resolved experiment or, where that does not have it or is not
  /// known, among the varied ones.
  std::optional<Value> setting(const std::string& key) const;
};

/// Whether a path exists. One that cannot be examined counts as existing, so that reading it
/// reports the error.
bool is_there(const std::filesystem::path& path);

/// The names of the columns that may come from traffic.csv.
inline constexpr std::array kTrafficColumns{"sent_ratio",  "sent_mib",      "required_mib_per_s",
                                            "codec_share", "reduced_ratio", "reduced_mib"};

/// Reads the record of a run folder without label, varied values and configuration, which the
/// caller knows. The content of a folder never causes an exception here, either.
RunRecord read_numbers(const std::filesystem::path& folder);

/// As read_numbers(), with label and varied values from point.json and configuration from
/// experiment.yaml.
RunRecord read_run(const std::filesystem::path& folder);

/// Whether the entry is a folder with files of a run or of a sweep for a run. A link to a folder is
/// not one.
bool is_run_folder(const std::filesystem::directory_entry& entry);

/// The folders of the runs that a folder stands for: those of a sweep that lie in it, also where it
/// has a run of its own beside them, as after `run` and `sweep` of one file; else its own run; else
/// the run folders in it. `fault` is set where it cannot be read.
std::vector<std::filesystem::path> run_folders_of(const std::filesystem::path& folder,
                                                  std::error_code& fault);

/// Orders the runs of a folder as the sweep's file has them, and those without a number behind, by
/// the names of their folders.
void sort_as_in_file(std::vector<RunRecord>& runs);

/// What a sweep knows of a run.
struct PointEntry {
  int number = 0;  ///< of the point in the file, from 1
  std::string label;
  Value varied;       ///< mapping of dotted key → value
  std::string file;   ///< the experiment's file, an absolute path
  std::string error;  ///< set if the run's process ended without recording it (killed, or never
                      ///< started); a later state "done" overrides it
};

/// Writes point.json, the sweep's knowledge of a run, to the run's folder.
void write_point(const std::filesystem::path& folder, const PointEntry& entry);
/// PointEntry::file of that point.json; "" where there is none, or none was written.
std::string file_of_point(const std::filesystem::path& folder);

/// The value of a metric at the "last" or "best" epoch that has one, as better_values() says; a
/// metric that is not judged has no best, so its last is taken. NaN: no epoch has one.
double value_at(const std::string& epoch, const std::string& metric,
                std::span<const double> values);

/// The number that a table cell averages: the metric's value_at() that epoch. nullopt unless the
/// run is done and has one; modelled metrics need no finished run.
std::optional<double> metric_of(const RunRecord& run, const std::string& metric,
                                const std::string& epoch);

/// Whether a metric is modelled, such as "modelled_hours".
bool is_modelled(const std::string& metric);

/// Which values of a metric are better.
enum class Better : std::uint8_t {
  Larger,
  Smaller,   ///< names that end in "loss", "seconds", "ratio" and so on
  NotJudged  ///< neither: what says how a training was set up, or what a probe measured in it
};
Better better_values(const std::string& metric);
/// Whether a value of the metric is as good as `floor`, or better.
bool reaches(double value, double floor, const std::string& metric);

}  // namespace pipewright
