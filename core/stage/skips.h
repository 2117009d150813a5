/// The skip connections of a model that is cut into stages, from what its layers declare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/schedule/schedule.h"
#include "core/stage/layer.h"

namespace pipewright {

/// Those between two stages, in the order they are put aside; `balance`: layers per stage. Throws
/// Error{Experiment}, naming the layer, where a tensor is put aside and never taken back, or taken
/// where none is left. Named by no one: the last put aside is the first taken back.
std::vector<Skip> skips_between(std::span<const LayerPtr> layers,
                                std::span<const std::int64_t> balance);

}  // namespace pipewright
