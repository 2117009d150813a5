// SPDX-License-Identifier: Apache-2.0
/// A remark on mini-batches with too few micro-batches to keep a pipeline busy.
#pragma once

#include <string>

#include "core/schedule/schedule.h"

namespace pipewright {

/// "1 micro-batch for 4 stages: workers are idle in 75 % of their slots; …" if the scheme flushes
/// the pipeline after every mini-batch (past a warm-up, if it begins with one), the shape has fewer
/// micro-batches than stages, and twice as many micro-batches as stages would leave fewer slots
/// idle; else "". Slots are those of slots.h.
std::string idle_remark(const Scheme& scheme, PipelineShape shape);

}  // namespace pipewright
