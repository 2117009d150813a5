// SPDX-License-Identifier: Apache-2.0
/// Checks what `table`, `plot` and `claims` name before anything is trained.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/records/run_record.h"

namespace pipewright {

/// Calls all parts and throws the Error{Experiment} of all of them together, each line once.
void check_all(const std::vector<std::function<void()>>& parts);

/// Reads these sections of the document and looks up each key they name in the runs, using only
/// their label, config and varied; of claims also the values. Throws Error{Experiment} with all
/// problems.
void check_named_keys(const Value& document, const std::vector<RunRecord>& runs);

/// The runs, where one without results has the metrics that its configuration says it will have.
std::vector<RunRecord> with_columns_to_come(std::vector<RunRecord> runs);

/// Makes what these sections ask for of runs that need not have trained yet, as `table`, `plot` and
/// the end of a sweep will do, by with_columns_to_come(). Throws Error{Experiment} with the
/// problems of all sections.
void check_tables(const Value& document, const std::vector<RunRecord>& records);

/// "claims need at least 3 runs a group; of gpipe this file has 2", if claims of the document can
/// never be shown by so many runs; otherwise "".
std::string few_runs_remark(const Value& document, const std::vector<RunRecord>& runs);

}  // namespace pipewright
