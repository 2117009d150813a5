// SPDX-License-Identifier: Apache-2.0
/// Checks and bounds that are needed before Plan makes loaders, stages, edges and exchanges.
#pragma once

#include "core/training/plan.h"

namespace pipewright {

/// Most values that a tensor at each edge can have in training or evaluation: for a whole
/// mini-batch, texts at their full length, images of the larger size of the two. Reads a sample of
/// the evaluation. Empty if a layer cannot compute shapes without values.
EdgeValues most_values(const Plan& plan);

/// Checks that the experiment's weights file, if any, has exactly the names and shapes that the
/// layers declare. Makes no tensor. Throws Error{Data} that lists tensors missing, left over or of
/// another shape.
void check_weights(const Plan& plan);

}  // namespace pipewright
