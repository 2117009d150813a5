// SPDX-License-Identifier: Apache-2.0
/// Charts of a report: curves and maps, edges of stability, memory over time.
#pragma once

#include <vector>

#include "core/config/value.h"
#include "core/page/page_content.h"
#include "core/simulation/hardware.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// Adds what the section `plot` draws or, without one, curves of the table's rows, a picture per
/// column; and the same of the loss. Where the table chooses values of a key, only the runs with
/// these are drawn, unless the section names the key. `table` must be laid_out(), and
/// Report::table made by it. Schedules get the series of the lines that their runs are in.
void add_curves(const Value& document, const TableSpec& table, Report& report);

/// Adds charts of the edges, one for each number of stages, the edges of each run's stages, and
/// notes on what the charts do not show. Runs without edges, such as those of optimizers that are
/// no linear recurrence, get none.
void add_edges(Report& report);

/// A chart for each number of stages: GiB of the worker that holds most, over the seconds of the
/// first mini-batches. Schedules whose costs cannot be counted are left out.
std::vector<Chart> memory_on(const Hardware& hardware, const Report& report);

}  // namespace pipewright
