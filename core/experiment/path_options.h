// SPDX-License-Identifier: Apache-2.0
/// The options of an experiment that are paths.
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// "dataset.root", "model.weights", …: the options that the parts named in a resolved experiment
/// declare as paths, whether or not they are set.
std::vector<std::string> path_options(const Value& resolved);

}  // namespace pipewright
