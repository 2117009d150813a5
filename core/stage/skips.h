/// The skip connections of a model that is cut into stages, from what its layers declare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/schedule/schedule.h"
#include "core/stage/layer.h"

namespace pipewright {

/// Those between two stages, in the order they are put aside, of one tensor the farthest first;
/// `balance`: layers per stage. Throws Error{Experiment}, naming the layer, where a tensor is put
/// aside and never taken back, or taken or looked at where none is left. Named by no one: the last
/// put aside is the first taken back.
std::vector<Skip> skips_between(std::span<const LayerPtr> layers,
                                std::span<const std::int64_t> balance);

/// [stage] → of each tensor put aside that waits behind its last layer: how often it leaves, once
/// for each stage it goes to. 0: it was only looked at here, and goes elsewhere straight from where
/// it was put aside.
std::vector<std::vector<int>> leaving_copies(std::span<const LayerPtr> layers,
                                             std::span<const std::int64_t> balance);

}  // namespace pipewright
