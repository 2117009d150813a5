/// What lies between stages: tensors without memory, told from shapes alone.
#pragma once

#include <vector>

#include "core/experiment/plan.h"

namespace pipewright {

/// The outputs of each stage but the last for inputs on the meta device, those included that skip
/// connections put aside. No tensor has memory.
std::vector<Tensors> boundaries(const Experiment& experiment, Tensors inputs);

/// How many values a tensor at each edge has at most, in training and in evaluation: that of a
/// whole mini-batch, of texts at their longest, of images as large as the larger of the two. Reads
/// a sample of the evaluation. Empty where layers do not compute shapes without values.
EdgeValues most_values(const Plan& plan);

}  // namespace pipewright
