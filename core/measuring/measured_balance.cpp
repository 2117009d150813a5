// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/measured_balance.h"

#include "core/base/error.h"
#include "core/measuring/head_count.h"
#include "core/schedule/schedule_size.h"

namespace pipewright {
CutRules cut_rules(const Experiment& e, int stages) {
  const MeasuredBalance rule = e.measured_balance.value_or(MeasuredBalance{});
  return {.by = rule.by_memory ? CutRules::By::Memory : CutRules::By::Time,
          .stages = stages,
          .microbatches = e.pipeline.microbatches,
          .bandwidth = rule.bandwidth,
          .latency = rule.latency,
          .memory = static_cast<std::int64_t>(rule.memory)};
}

StageMemories stage_memories(const Experiment& e, const Profile& profile, int stages) {
  PipelineShape shape = e.shape(2 * stages + 2);
  if (stages != shape.stages) {
    shape.placement.clear();
    shape.replica_placement.clear();
  }
  shape.stages = stages;
  check_schedule_size(shape, shape.minibatches);
  const ProvedSchedule proved = prove(e.schedule_in(shape));
  AuxiliaryHeads heads = count_heads(e, stages);
  take_peaks(heads, profile);
  const Holdings held = e.holdings(proved.schedule);
  std::vector<std::vector<LayerPtr>> each;
  for (const LayerPtr& layer : e.layers) each.push_back({layer});
  return {profile,          stage_moments(proved),  held.slots(),
          std::move(heads), held.table_bytes(each), e.pipeline.slices};
}

Layout cut_by(const Experiment& e, const Profile& profile) {
  if (!e.layout.balance.empty()) return e.layout;
  const int stages = e.pipeline.stages;
  try {
    return e.cut(best_cut(profile, stage_memories(e, profile, stages), cut_rules(e, stages)));
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), e.where("pipeline.balance"));
  }
}

}  // namespace pipewright
