// SPDX-License-Identifier: Apache-2.0
/// The sections of an experiment file that say what commands show or simulate of its runs, for
/// `describe` and `schema`.
#pragma once

#include <vector>

#include "core/config/options.h"

namespace pipewright {

/// One for each key of experiment_keys() whose use is Shown, in their order.
std::vector<OptionInfo> table_sections();

/// The options and sections of an experiment file that do not name a part, these among them.
std::vector<OptionInfo> plain_sections();

}  // namespace pipewright
