// SPDX-License-Identifier: Apache-2.0
/// What a report compares besides what the experiment's sections ask for: the metric against
/// settings and against time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/page/chart.h"
#include "core/page/page_content.h"
#include "core/records/run_record.h"
#include "core/tables/table.h"

namespace pipewright {

/// A chart of the metric against each setting with numbers that vary: workers, stages, learning
/// rates and so on, at most three. The lines are what rows and columns tell apart, so that a point
/// is the mean over the runs of a cell; `spec` must be laid_out(). A setting of which each line has
/// one value has no chart, as it would compare lines and not the setting. None if nothing is done.
std::vector<Chart> charts_against(const TableSpec& spec, const Table& table,
                                  const std::vector<RunRecord>& runs);

/// The metric of each cell against modelled hours where runs have been modelled, otherwise against
/// the seconds that training took where it ran. None if fewer than two cells have both, and without
/// modelled hours if one thread played the workers of some run.
std::optional<ReportFront> front_of(const TableSpec& spec, const Table& table,
                                    const std::vector<RunRecord>& runs);

}  // namespace pipewright
