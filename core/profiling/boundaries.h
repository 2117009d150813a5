/// What lies between stages: tensors without memory, told from shapes alone.
#pragma once

#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright {

/// The outputs of each stage but the last for inputs on the meta device, those included that skip
/// connections put aside. No tensor has memory.
std::vector<Tensors> boundaries(const Experiment& experiment, Tensors inputs);

}  // namespace pipewright
