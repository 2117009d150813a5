// SPDX-License-Identifier: Apache-2.0
/// probes.csv: what probes measured beside a training, one value per line.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// The header of probes.csv.
inline constexpr const char* kProbeHeader = "epoch,minibatch,stage,probe,quantity,value";

struct ProbeValue {
  int epoch = 0, minibatch = 0;  ///< both from 0; the mini-batch within its epoch
  std::optional<int> stage;      ///< none: a value of the whole model
  std::string probe, quantity;
  double value = 0;
};

/// Reads probes.csv of a run's folder, in the file's order; nothing if there is no such file. Lines
/// without a value and a last line that is not complete yet are left out. Throws Error{Data} with
/// file, line and column.
std::vector<ProbeValue> read_probe_log(const std::filesystem::path& run_folder);

/// The last values of one quantity that a probe has measured in a run.
struct LastProbeValues {
  std::map<int, double> stages;
  std::optional<double> model;  ///< of the whole model
};

/// Reads them from a run's folder; there are none without probes.csv. Throws what read_probe_log()
/// throws.
LastProbeValues last_probe_values(const std::filesystem::path& run_folder, std::string_view probe,
                                  std::string_view quantity);

/// How many mini-batches an epoch of the run has, counted in the first epoch of steps.csv; none
/// without that file.
std::optional<int> minibatches_per_epoch(const std::filesystem::path& run_folder);

}  // namespace pipewright
