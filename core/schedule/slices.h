// SPDX-License-Identifier: Apache-2.0
/// Slices of sequences (PipelineShape::slices). Each slice of a micro-batch is a pass of its own,
/// and counts as a micro-batch everywhere else: number i is slice i mod `slices` of the
/// ⌊i / slices⌋-th micro-batch. A slice attends to the keys and values of the slices before it, and
/// gives them a gradient: on each stage the forwards go from a micro-batch's first slice to its
/// last, and the backwards from its last to its first.
#pragma once

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// The first action that comes too early for its slice; kNowhere if all are in order.
ActionPlace slice_out_of_order(const Schedule& schedule, const PassIndex& index);

// Rules of prove() (rules.h).

/// A mini-batch's slices are whole micro-batches. Throws Error{Schedule}. The other rules
/// divide by `slices`.
void check_slice_numbers(const PipelineShape& shape);
/// No slice of a micro-batch comes before one that it needs, and nothing has its keys moved to the
/// host, because later slices read them.
void check_slices(const Schedule& schedule, const PassIndex& index);

}  // namespace pipewright
