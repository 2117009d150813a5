// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/measured_balance.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/as_size.h"
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

namespace {

/// The weights that layers of the experiment share. As skips between stages of one layer each they
/// say which layers these are.
SharedWeights shared_weights(const Experiment& e) {
  const Layout each = e.cut(std::vector<std::int64_t>(e.layers.size(), 1));
  SharedWeights shared{.lent = {}, .copied = std::vector<std::int64_t>(e.layers.size(), 0)};
  std::map<std::pair<int, int>, SharedWeights::Lent> lent;  // by layer and parameter
  for (const Skip& skip : each.skips) {
    if (skip.lent_bytes == 0) continue;
    SharedWeights::Lent& weight = lent[{skip.from, skip.parameter}];
    weight.owner = as_size(skip.from);
    weight.bytes = skip.lent_bytes;
    weight.borrowers.push_back(as_size(skip.to));
  }
  for (auto& [where, weight] : lent) {
    std::ranges::sort(weight.borrowers);
    shared.lent.push_back(std::move(weight));
  }
  for (const TiedCopies& tied : each.tied)
    for (const int layer : {tied.first, tied.second}) shared.copied[as_size(layer)] += tied.bytes;
  return shared;
}

}  // namespace

StageMemories stage_memories(const Experiment& e, const Profile& profile, int stages) {
  PipelineShape shape = e.shape(2 * stages + 2);
  if (stages != shape.stages) {
    shape.placement.clear();
    shape.replica_placement.clear();
  }
  shape.stages = stages;
  shape.skips.clear();  // of one cut, and this is for all
  shape.tied.clear();
  check_schedule_size(shape, shape.minibatches);
  const ProvedSchedule proved = prove(e.schedule_in(shape));
  AuxiliaryHeads heads = count_heads(e, stages);
  take_peaks(heads, profile);
  const Holdings held = e.holdings(proved.schedule);
  std::vector<std::vector<LayerPtr>> each;
  for (const LayerPtr& layer : e.layers) each.push_back({layer});
  SharedWeights shared = shared_weights(e);
  auto moments = stage_moments(proved, shared.between(static_cast<int>(e.layers.size()), stages));
  return {profile, std::move(moments), held.slots(),
          HeldBesides{.heads = std::move(heads),
                      .tables = held.table_bytes(each),
                      .slices = e.pipeline.slices,
                      .shared = std::move(shared),
                      .fixed = e.fixed_bytes()}};
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
