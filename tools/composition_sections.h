// SPDX-License-Identifier: Apache-2.0
/// The keys of an experiment file that make one document, or many runs, of others, for `describe`.
#pragma once

#include <string>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

struct CompositionSection {
  OptionInfo info;      ///< name, help and, of `sweep`, its parts
  std::string example;  ///< in YAML
};

/// One for each key of experiment_keys() whose use is Composition, in their order.
std::vector<CompositionSection> composition_sections();

}  // namespace pipewright
