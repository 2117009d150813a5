// SPDX-License-Identifier: Apache-2.0
/// Checks the keys that `table`, `plot` and `claims` name before anything is trained.
#pragma once

#include <vector>

#include "core/config/value.h"
#include "core/records/run_record.h"

namespace pipewright {

/// Reads these sections of the document and looks up each key they name in the runs, using only
/// their label, config and varied; of claims also the values. Throws Error{Experiment} with all
/// problems.
void check_named_keys(const Value& document, const std::vector<RunRecord>& runs);

}  // namespace pipewright
