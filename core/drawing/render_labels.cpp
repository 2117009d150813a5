// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_labels.h"

#include <set>

#include "core/base/text.h"

namespace pipewright {

RenderLabels::RenderLabels(const Schedule& schedule)
    : microbatches_(schedule.shape.microbatches), replicas_(schedule.shape.replicas) {
  for (const auto& actions : schedule.workers) {
    Holding& holding = workers_.emplace_back();
    for (const Action& action : actions) holding[action.replica].insert(action.stage);
    std::set<int> stages;
    for (const auto& [replica, of_replica] : holding)
      stages.insert(of_replica.begin(), of_replica.end());
    if (stages.size() > 1) several_stages_ = true;
    if (stages != std::set{static_cast<int>(workers_.size()) - 1}) plain_ = false;
  }
}

std::string RenderLabels::action(const Action& action) const {
  std::string label;
  if (several_stages_) label += std::to_string(action.stage);
  label += facts_of(action.kind).letter;
  label += std::to_string(action.minibatch);
  if (of_microbatch(action.kind) && microbatches_ > 1) label += concat(".", action.microbatch);
  return label;
}

std::string RenderLabels::worker(std::size_t worker) const {
  return concat("worker ", worker);
}

std::string RenderLabels::stages(std::size_t worker) const {
  std::vector<std::string> parts;
  for (const auto& [replica, stages] : workers_[worker]) {
    std::vector<std::string> numbers;
    for (const int stage : stages) numbers.push_back(std::to_string(stage));
    std::string& text =
        parts.emplace_back(concat(numbers.size() > 1 ? "stages " : "stage ", join(numbers, ", ")));
    if (replicas_ > 1) text += concat(", replica ", replica);
  }
  return join(parts, "; ");
}

std::string weights_text(int version, int ahead) {
  if (ahead == 0) return std::to_string(version);
  return concat(version, "→", version + ahead, "(", ahead > 0 ? "+" : "", ahead, ")");
}

}  // namespace pipewright
