// SPDX-License-Identifier: Apache-2.0
/// Refuses schedules that do not fit into memory before they are made.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/schedule/schedule.h"

namespace pipewright {

/// Bytes that an action takes with what proves it: measured on ten schedules of eight schemes with
/// 0.7 to 5.2 million actions, 222 to 242. An action itself has 48 of them, its weights 64, its
/// span 40; the rest are what arrives when, and what is proved.
inline constexpr std::size_t kBytesOfProved = 250;

/// Throws Error{Data} if the micro-batches of so many mini-batches cannot be numbered with int.
void check_minibatch_numbers(const PipelineShape& shape, std::int64_t minibatches);

/// Throws Error{Data}, naming actions and bytes, if a schedule of so many mini-batches does not fit
/// into memory at `bytes_each` bytes per action. It counts one forward, and in training one
/// backward, per stage, replica and micro-batch: every scheme makes at least these.
void check_schedule_size(const PipelineShape& shape, std::int64_t minibatches,
                         std::size_t bytes_each = sizeof(Action));

}  // namespace pipewright
