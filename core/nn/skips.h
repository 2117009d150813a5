// SPDX-License-Identifier: Apache-2.0
/// The skip connections of a model that is cut into stages, derived from what its layers declare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/nn/layer.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Lists the skip connections between different stages, sorted by push order; a tensor that several
/// stages read is listed once per reader, farthest reader first. `balance` is the number of layers
/// per stage. Pushes and pops are paired by order (a stack), not by name. Throws Error{Experiment}
/// with the layer's name if a tensor is pushed and never popped, or if a layer pops from or peeks
/// into an empty stack. Weights that a stage lends have numbers of `number_bytes` bytes.
std::vector<Skip> skips_between(std::span<const LayerPtr> layers,
                                std::span<const std::int64_t> balance,
                                std::int64_t number_bytes = 4);

/// [stage] → for each tensor on the skip stack behind the stage's last layer, how many copies the
/// stage sends: one for each stage that reads it. 0: the stage only peeked at it; the stage that
/// pushed it sends it to the later readers.
std::vector<std::vector<int>> leaving_copies(std::span<const LayerPtr> layers,
                                             std::span<const std::int64_t> balance);

/// All pairs of copies of a parameter (ParameterSpec::copied), those of the earlier one first.
std::vector<TiedCopies> tied_copies(std::span<const LayerPtr> layers,
                                    std::span<const std::int64_t> balance,
                                    std::int64_t number_bytes);

}  // namespace pipewright
