// SPDX-License-Identifier: Apache-2.0
/// Time to a loss: how many steps or tokens, or seconds of modelled time, a training takes until
/// its test loss is at most a given one. Between two evaluations the loss is taken to fall on a
/// line; a loss that the first evaluation has reached is reached at that one. A finished run that
/// never gets there has "not reached" as its result, which is kept as an infinite number and never
/// averaged.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/records/run_record.h"

namespace pipewright {

inline constexpr std::array<std::string_view, 3> kTimesTo{"steps_to", "tokens_to",
                                                          "modelled_time_to"};
/// Whether a metric is one of these.
bool is_time_to(const std::string& metric);

/// A column of evaluations.csv over another one.
struct EvaluationPoint {
  double at = 0, value = 0;
};
/// Rows that have both; none if the file or a column is not there. Throws Error{Data}.
std::vector<EvaluationPoint> evaluations_of(const RunRecord& run, const std::string& at,
                                            const std::string& value);

/// Samples per second as modelled; none if the run has not been simulated.
std::optional<double> modelled_pace(const RunRecord& run);

/// Where the loss is reached, as said above; infinite: nowhere. None without points.
std::optional<double> reached_at(const std::vector<EvaluationPoint>& points, double loss);

/// The runs with RunRecord::times_to for this loss; none if no name is such a metric.
std::vector<RunRecord> times_to_added(std::vector<RunRecord> runs,
                                      const std::vector<std::string>& names, double loss);

/// The runs with what metrics of these names read from files of their own: probe_columns_added()
/// and times_to_added(); none if there is nothing to add.
std::vector<RunRecord> derived_added(const std::vector<RunRecord>& runs,
                                     const std::vector<std::string>& names, double loss);

}  // namespace pipewright
