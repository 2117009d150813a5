/// Schedules that no memory holds are refused before they are made.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/schedule/schedule.h"

namespace pipewright {

/// Throws Error{Data}, naming actions and bytes, where so many mini-batches of that shape cannot be
/// held at `bytes_each` for an action. Counted are a forward, and in training a backward, of each
/// stage, replica and micro-batch: every scheme makes at least these.
void check_schedule_size(const PipelineShape& shape, std::int64_t minibatches,
                         std::size_t bytes_each = sizeof(Action));

}  // namespace pipewright
