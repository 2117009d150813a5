// SPDX-License-Identifier: Apache-2.0
/// The choice of one run of a folder by its settings: --where scheme.name=pipedream,seed=2.
#pragma once

#include <string>
#include <vector>

#include "core/records/run_record.h"

namespace pipewright {

/// The only run that has all settings, "KEY=VALUE,KEY=VALUE". A key is a dotted path into the
/// experiment, the end of one ("seed") where it is that of one path only or of one that varies, or
/// one of "label", "state" and "workers"; numbers are compared as numbers. Throws Error{Experiment}
/// in one line: settings that no run has, with those that runs have, or what several runs differ
/// in.
const RunRecord& chosen_run(const std::vector<RunRecord>& runs, const std::string& settings);

/// The settings in which each run differs from others, in the words that choose it.
std::vector<std::string> distinguishing_settings(const std::vector<RunRecord>& runs);

}  // namespace pipewright
