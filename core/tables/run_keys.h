// SPDX-License-Identifier: Apache-2.0
/// Keys that name rows, columns, lines and pictures. A key is a dotted path into a run's resolved
/// experiment or one of these: "label" (of its point of the sweep), "workers" (number of all
/// workers it used), "=text" (that text).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/records/run_record.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// The text of a key that a run does not have.
inline constexpr const char* kNoValue = "–";

/// A value as tables have it: "0.1" for the number 1e-1.
std::string value_text(const Value& value);
/// Dotted keys and texts of all scalars and lists of a document.
std::map<std::string, std::string> option_texts(const Value& document);
/// The run's value of a key as text; "–" if it has none, as for an option of another scheme.
std::string key_text(const RunRecord& run, const std::string& key);
/// A text that a key has, with the key's name if it is a number: "gpipe", "stages 4".
std::string named_value(const std::string& key, const std::string& text);

/// The value as a title: "gpipe" for a text, with the key's name for other values ("stages 4").
std::string key_title(const RunRecord& run, const std::string& key);
/// The order of runs in which each key of a list varies more slowly than the next. The values of a
/// key keep the order in which the runs first have them.
std::vector<std::size_t> slowest_first(const std::vector<TableKey>& keys,
                                       const std::vector<RunRecord>& runs);
/// Records a problem if no run has the key; `what` names the option in it, and `words` are what
/// else than a key the option may be.
void check_key(const TableKey& key, const char* what, const std::vector<RunRecord>& runs,
               Problems& problems, std::vector<std::string> words = {});
/// Records a problem if no run has the metric. Modelled ones are not judged where none was
/// simulated. Those of probes must have been added (probe_metrics.h).
void check_metric(const TableKey& metric, const char* what, const std::vector<RunRecord>& runs,
                  Problems& problems);
/// Records a problem if the metric, or key, is of evaluations inside trainings and none of the runs
/// has any, by its configuration.
void check_evaluated(const TableKey& metric, const char* what, const std::vector<RunRecord>& runs,
                     Problems& problems);
/// Whether a metric is shown in percent.
bool is_share(const std::string& metric);
/// "seconds" of modelled_time_to; "" of metrics whose name says their unit.
std::string unit_of(const std::string& metric);
/// The value of a metric as sentences show it: shares in percent, with two decimals.
std::string shown_number(const std::string& metric, double value);
/// Decimals of a mean that is no share: so many that it has four significant digits.
int decimals_of(double mean);
/// A mean and, where it is finite, its deviation with as many decimals: "93.10 ± 0.22" of shares,
/// in percent; "1234 ± 56", "3.500e-12 ± 1.0e-13" of other metrics.
std::string shown_mean(bool percent, double mean, double std);

}  // namespace pipewright
