// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/schedule.h"

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {

int PipelineShape::workers_per_replica() const {
  if (placement.empty()) return stages;
  return *std::max_element(placement.begin(), placement.end()) + 1;
}

int PipelineShape::worker_of(int stage, int replica) const {
  const int within = placement.empty() ? stage : placement[static_cast<std::size_t>(stage)];
  return replica * workers_per_replica() + within;
}

std::vector<int> PipelineShape::workers_of(int stage) const {
  std::vector<int> workers;
  for (int replica = 0; replica < replicas; ++replica) workers.push_back(worker_of(stage, replica));
  return workers;
}

std::string action_name(const Action& action, int microbatches) {
  std::string name = concat(action.stage, facts_of(action.kind).letter, action.minibatch);
  if (is_pass(action.kind) && microbatches > 1) name += concat(".", action.microbatch);
  if (action.kind == ActionKind::BackwardInput) name += concat("←", action.loss);
  return name;
}

template <>
Registry<Scheme>& Registry<Scheme>::instance() {
  static Registry<Scheme> registry;
  return registry;
}

}  // namespace pipewright
