/// The keys that `table` and `plot` name, looked for before anything has been trained.
#pragma once

#include <vector>

#include "core/config/value.h"
#include "core/records/run_record.h"

namespace pipewright {

/// Reads both sections of the document and looks for each key they name in the runs, of which only
/// label, config and varied are asked for. Throws Error{Experiment} with all problems.
void check_named_keys(const Value& document, const std::vector<RunRecord>& runs);

}  // namespace pipewright
