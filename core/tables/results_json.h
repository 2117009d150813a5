// SPDX-License-Identifier: Apache-2.0
/// A table and its verdicts as JSON, with every number that they rest on (docs/formats/results.md).
#pragma once

#include <string>
#include <vector>

#include "core/tables/table.h"
#include "core/tables/tradeoff.h"
#include "core/tables/verdicts.h"

namespace pipewright {

/// One JSON mapping and a line feed. Numbers are in the metric's own unit and read back as the same
/// double; what is not known, and what JSON cannot write (infinity), is null.
/// `differences`: those of differences_from(), if they were asked for; `tradeoff`: the rows of
/// make_tradeoff(), if runs were modelled.
std::string results_json(const Table& table, const std::vector<Verdict>& verdicts,
                         const std::vector<ClaimTest>& differences = {},
                         const std::vector<TradeoffRow>& tradeoff = {});

}  // namespace pipewright
