/// A remark on a mini-batch that is cut too little to keep a pipeline busy.
#pragma once

#include <string>

#include "core/schedule/schedule.h"

namespace pipewright {

/// "1 micro-batch for 4 stages: workers idle 75 % of their slots; …" for a scheme that empties its
/// pipe after every mini-batch, has fewer micro-batches than stages in that shape, and would be
/// less idle with twice as many as stages; else "". Slots are those of slots.h.
std::string idle_remark(const Scheme& scheme, PipelineShape shape);

}  // namespace pipewright
