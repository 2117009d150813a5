/// What stands above a drawing.
#pragma once

#include <string>

#include "core/experiment/experiment.h"

namespace pipewright {

/// "first: spectrain, version 2": the experiment's name, its scheme, and what was chosen of the
/// scheme's options.
std::string drawing_title(const Experiment& experiment);

}  // namespace pipewright
