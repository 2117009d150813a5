// SPDX-License-Identifier: Apache-2.0
/// Curves and maps of a report.
#pragma once

#include "core/config/value.h"
#include "core/page/page_content.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// Adds what the section `plot` draws or, without one, curves of the table's rows, a picture per
/// column; and the same of the loss. Where the table chooses values of a key, only the runs with
/// these are drawn, unless the section names the key. `table` must be laid_out(), and
/// Report::table made by it. Schedules get the series of the lines that their runs are in.
void add_curves(const Value& document, const TableSpec& table, Report& report);

}  // namespace pipewright
