// SPDX-License-Identifier: Apache-2.0
/// Remarks on schedules that are right but perhaps not meant: on mini-batches with too few
/// micro-batches to keep a pipeline busy, on stages that make fewer updates than there are
/// mini-batches, and on weights that stages share.
#pragma once

#include <string>

#include "core/schedule/prove.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// "1 micro-batch for 4 stages: workers are idle in 75 % of their slots; …" if the scheme flushes
/// the pipeline after every mini-batch (past a warm-up, if it begins with one), the shape has fewer
/// micro-batches than stages, and twice as many micro-batches as stages would leave fewer slots
/// idle; else "". Slots are those of slots.h.
std::string idle_remark(const Scheme& scheme, PipelineShape shape);

/// "stage 1 updates its weights 43 times in 44 mini-batches, so …" if a stage of some replica makes
/// fewer updates than there are mini-batches; it names the stage with the fewest and says how many
/// others there are. "" if every stage updates in every mini-batch, or if the schedule only
/// evaluates. Such a schedule is valid: gradients are summed until the next update. A loop counts
/// with all its rounds.
std::string update_remark(const ProvedSchedule& proved);

/// "stage 3 computes with weights of stage 0, …" if stages share weights: how often these and their
/// gradients cross in one replica, and how large they are; else "".
std::string lent_remark(const ProvedSchedule& proved);

}  // namespace pipewright
