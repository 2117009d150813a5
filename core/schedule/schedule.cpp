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

const char* kind_name(ActionKind kind) {
  switch (kind) {
    case ActionKind::Forward: return "forward";
    case ActionKind::Head: return "head";
    case ActionKind::Recompute: return "recompute";
    case ActionKind::Backward: return "backward";
    case ActionKind::BackwardInput: return "input-only backward";
    case ActionKind::BackwardWeight: return "weight-only backward";
    case ActionKind::Reduce: return "reduce";
    case ActionKind::Update: return "update";
  }
  return "?";
}

std::string action_name(const Action& action, int microbatches) {
  const char* letter = "?";
  switch (action.kind) {
    case ActionKind::Forward: letter = "F"; break;
    case ActionKind::Head: letter = "H"; break;
    case ActionKind::Recompute: letter = "r"; break;
    case ActionKind::Backward: letter = "B"; break;
    case ActionKind::BackwardInput: letter = "b"; break;
    case ActionKind::BackwardWeight: letter = "W"; break;
    case ActionKind::Reduce: letter = "R"; break;
    case ActionKind::Update: letter = "U"; break;
  }
  std::string name = concat(action.stage, letter, action.minibatch);
  const bool pass = action.kind != ActionKind::Reduce && action.kind != ActionKind::Update;
  if (pass && microbatches > 1) name += concat(".", action.microbatch);
  if (action.kind == ActionKind::BackwardInput) name += concat("←", action.loss);
  return name;
}

template <>
Registry<Scheme>& Registry<Scheme>::instance() {
  static Registry<Scheme> registry;
  return registry;
}

}  // namespace pipewright
