// SPDX-License-Identifier: Apache-2.0
/// What the runs of a pilot, with other seeds, say beforehand about the claims of planned runs.
#pragma once

#include <string>
#include <vector>

#include "core/records/result_rows.h"
#include "core/records/run_record.h"
#include "core/tables/claims.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// A line for each comparison of means that the claims ask for: the standard deviation of the
/// pilot's paired differences, and the effect that as many pairs as seeds are planned find with a
/// probability of 80 %, alone and among all comparisons. Of `close` it warns where no such runs can
/// show it: the interval of two equal means would be wider than the margin. A row of the pilot is
/// one of the planned run with its label and its settings, but for the seed; three pairs of rows
/// are needed. Then a warning for each planned number that is the smallest or the largest of those
/// that the pilot has tried for its runs. "" without such claims and numbers.
std::string pilot_text(const std::vector<Claim>& claims, const TableSpec& table,
                       const std::vector<RunRecord>& planned, const std::vector<ResultRow>& pilot);

}  // namespace pipewright
