// SPDX-License-Identifier: Apache-2.0
/// The options that experiment files can have, for `describe`, the JSON Schema and the identity.
#pragma once

#include <string>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

/// Every option of every section; a section with a registered part has the default part's options.
std::vector<OptionInfo> experiment_options();
/// The options of one part ("scheme", "gpipe"); none if the part is unknown.
std::vector<OptionInfo> part_options(const std::string& kind, const std::string& name);

/// "dataset.root", "model.weights", …: the options that are paths, whether or not they are set.
std::vector<std::string> paths_among(const std::vector<OptionInfo>& options);
/// The options that are paths among those of the parts that a resolved experiment names.
std::vector<std::string> path_options(const Value& resolved);

}  // namespace pipewright
