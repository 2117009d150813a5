// SPDX-License-Identifier: Apache-2.0
/// Files that runs read under one name and that changed between the runs.
#pragma once

#include <string>
#include <vector>

#include "core/records/run_record.h"

namespace pipewright {

/// A sentence for each option that names a file which had another content when other runs of these
/// were trained, such as "dataset.file is x.csv, which had another content when 'b' was trained
/// than when 'a' was". A run that is done is not trained again because its data changed, so the
/// runs of one table can be of different data.
std::vector<std::string> other_contents(const std::vector<RunRecord>& runs);

}  // namespace pipewright
