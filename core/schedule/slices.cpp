// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/slices.h"

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/invalid_schedule.h"

namespace pipewright {
namespace {

/// The pass of the same stage that an action has to follow because of its slice; kNowhere if there
/// is none.
ActionPlace needed_slice(const PipelineShape& shape, const PassIndex& index, Action action) {
  const int slice = action.microbatch % shape.slices;
  if (action.kind == ActionKind::Forward && slice > 0) {
    --action.microbatch;
    return index.forward(action);
  }
  if (is_backward(action.kind) && slice + 1 < shape.slices) {
    ++action.microbatch;
    return index.backward(action, action.stage);
  }
  return kNowhere;
}

}  // namespace

ActionPlace slice_out_of_order(const Schedule& schedule, const PassIndex& index) {
  const PipelineShape& shape = schedule.shape;
  if (shape.slices == 1) return kNowhere;
  for (int w = 0; w < static_cast<int>(schedule.workers.size()); ++w)
    for (int i = 0; i < static_cast<int>(schedule.workers[as_size(w)].size()); ++i)
      if (needed_slice(shape, index, schedule.workers[as_size(w)][as_size(i)]).second > i)
        return {w, i};  // a stage's passes are on one worker
  return kNowhere;
}

void check_slice_numbers(const PipelineShape& shape) {
  if (shape.slices < 1 || shape.microbatches % shape.slices != 0)
    refuse_shape(concat("its ", shape.microbatches,
                        " slices of a mini-batch are not whole micro-batches of ", shape.slices));
}

void check_slices(const Schedule& schedule, const PassIndex& index) {
  if (schedule.shape.slices == 1) return;
  for_each_action(schedule, [&](ActionPlace place, const Action& action) {
    if (goes_on_beside(action.kind))
      refuse(schedule, place, "moves keys of a slice, which other slices read meanwhile");
  });
  const ActionPlace early = slice_out_of_order(schedule, index);
  if (early == kNowhere) return;
  refuse(schedule, early,
         action_at(schedule, early).kind == ActionKind::Forward
             ? "comes before the forward of the slice before it, to whose keys it attends"
             : "comes before the backward of the slice behind it, which gives its keys a gradient");
}

}  // namespace pipewright
