// SPDX-License-Identifier: Apache-2.0
/// Metrics that probes measured. `probe.weight_gap.forward_relative` is, of an epoch, the mean of
/// the whole model's values, or where the probe writes only values of stages, the mean over these;
/// `probe.weight_gap.forward_relative[2]` is the mean of stage 2. Means are over all measurements
/// of the epoch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/records/probe_log.h"
#include "core/records/run_record.h"

namespace pipewright {

/// A metric's name, taken apart.
struct ProbeMetric {
  std::string probe, quantity;
  std::optional<int> stage;
};

/// Whether the name begins as those of probes' metrics do.
bool is_probe_metric(const std::string& name);
/// Takes a name apart; nullopt if it is not of that form.
std::optional<ProbeMetric> probe_metric(const std::string& name);

/// The values of a metric in a log: those of its stage; without a stage those of the whole model,
/// if there are any and `per_stage` is not set, else those of all stages.
std::vector<ProbeValue> values_of(const ProbeMetric& metric, const std::vector<ProbeValue>& log,
                                  bool per_stage = false);

/// Adds a column to each run that has a probes.csv for each of `names` that is a probe's metric and
/// that the run's probes have measured, with one mean per epoch. A file that cannot be read makes
/// its run a failed one, with the reason.
void add_probe_columns(std::vector<RunRecord>& runs, const std::vector<std::string>& names);

/// A copy of the runs with these columns, or nothing if none of the names is a probe's metric.
std::vector<RunRecord> probe_columns_added(const std::vector<RunRecord>& runs,
                                           const std::vector<std::string>& names);

/// The names of all metrics that the runs' probes have measured, without stages. Files that cannot
/// be read have none.
std::vector<std::string> probe_metric_names(const std::vector<RunRecord>& runs);

}  // namespace pipewright
