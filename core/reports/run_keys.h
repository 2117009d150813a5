/// What names rows, columns, lines and pictures: values of a run by dotted keys of its resolved
/// experiment. Derived keys: "label", of its point of the sweep; "workers", all it used; "=text",
/// that text.
#pragma once

#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/records/run_record.h"
#include "core/reports/table_spec.h"

namespace pipewright {

/// The run's value of a key as text; "–" where it has none (an option of another scheme, say).
std::string key_text(const RunRecord& run, const std::string& key);
/// "gpipe" for texts; "stages 4" for other values, which do not speak for themselves.
std::string key_title(const RunRecord& run, const std::string& key);
/// Records a problem if no run has the key; `what` names the option in it.
void check_key(const TableKey& key, const char* what, const std::vector<RunRecord>& runs,
               Problems& problems);
/// Records a problem if no run has the column of epochs.csv.
void check_metric(const TableKey& metric, const char* what, const std::vector<RunRecord>& runs,
                  Problems& problems);
/// A metric that is shown in percent.
bool is_share(const std::string& metric);

}  // namespace pipewright
