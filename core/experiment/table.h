/// Tables of results: rows × columns of mean ± std (n), from run folders.
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
  std::string label;
  std::string state;  ///< done, failed, interrupted, running, missing
  std::string error;
  Value varied;       ///< mapping of dotted key → value, from run.json's "varied"
  Value config;       ///< resolved experiment
  std::vector<std::string> columns;             ///< of epochs.csv
  std::vector<std::vector<double>> epochs;      ///< rows of epochs.csv (NaN where empty)
};

/// The record of a run folder (state "missing" when there is no run.json).
RunRecord read_run(const std::filesystem::path& folder);

/// The number a table cell averages: `metric` at "last" or "best" epoch ("best": largest, or
/// smallest for metrics that end in "loss" or are "perplexity"). nullopt unless state is done.
std::optional<double> metric_of(const RunRecord& run, const std::string& metric, const std::string& epoch);

enum class TableFormat : std::uint8_t { Markdown, Csv, Latex };

}  // namespace pipewright
