// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/schedule.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"

namespace pipewright {

namespace {

int workers_in(const std::vector<int>& placement) {
  return placement.empty() ? 0 : std::ranges::max(placement) + 1;
}

}  // namespace

int PipelineShape::workers_per_replica() const {
  if (!replica_placement.empty()) return workers_in(replica_placement.front());
  return placement.empty() ? stages : workers_in(placement);
}

int PipelineShape::workers() const {
  if (replica_placement.empty()) return workers_per_replica() * replicas;
  int workers = 0;
  for (const std::vector<int>& each : replica_placement)
    workers = std::max(workers, workers_in(each));
  return workers;
}

void PipelineShape::place(std::vector<std::vector<int>> workers) {
  placement = workers.front();
  replica_placement.clear();
  for (int replica = 0; replica < replicas; ++replica)
    for (int stage = 0; stage < stages; ++stage)
      if (workers[as_size(replica)][as_size(stage)] != worker_of(stage, replica)) {
        placement.clear();
        replica_placement = std::move(workers);
        return;
      }
}

PipelineShape PipelineShape::evaluating() const {
  PipelineShape first = *this;
  first.training = false;
  first.replicas = first.microbatches = first.slices = 1;
  if (!replica_placement.empty()) first.placement = replica_placement.front();
  first.replica_placement.clear();
  return first;
}

int PipelineShape::worker_of(int stage, int replica) const {
  if (!replica_placement.empty()) return replica_placement[as_size(replica)][as_size(stage)];
  const int within = placement.empty() ? stage : placement[as_size(stage)];
  return replica * workers_per_replica() + within;
}

std::vector<int> PipelineShape::workers_of(int stage) const {
  std::vector<int> workers;
  for (int replica = 0; replica < replicas; ++replica) workers.push_back(worker_of(stage, replica));
  return workers;
}

std::string action_name(const Action& action, int microbatches) {
  std::string name = concat(action.stage, facts_of(action.kind).letter, action.minibatch);
  if (of_microbatch(action.kind) && microbatches > 1) name += concat(".", action.microbatch);
  if (action.kind == ActionKind::BackwardInput) name += concat("←", action.loss);
  return name;
}

std::string microbatches_text(const PipelineShape& shape) {
  return counted(shape.whole_microbatches(), "micro-batch") +
         (shape.slices > 1 ? concat(" in ", shape.slices, " slices each") : "");
}

std::string microbatch_text(const Action& pass, const PipelineShape& shape) {
  if (shape.slices == 1) return concat("micro-batch ", pass.microbatch);
  return concat("micro-batch ", pass.microbatch / shape.slices, ", slice ",
                pass.microbatch % shape.slices);
}

template <>
Registry<Scheme>& Registry<Scheme>::instance() {
  static Registry<Scheme> registry;
  return registry;
}

}  // namespace pipewright
