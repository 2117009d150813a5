// SPDX-License-Identifier: Apache-2.0
/// The title of a drawing.
#pragma once

#include <string>

#include "core/experiment/experiment.h"

namespace pipewright {

/// The experiment's name, its scheme and the scheme's options that were set: "first: spectrain,
/// version 2".
std::string drawing_title(const Experiment& experiment);

}  // namespace pipewright
