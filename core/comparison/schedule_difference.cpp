// SPDX-License-Identifier: Apache-2.0
#include "core/comparison/schedule_difference.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/render_labels.h"

namespace pipewright {
namespace {

/// A schedule with what is needed to compare and to name its actions.
class Compared {
 public:
  explicit Compared(const ProvedSchedule& proved)
      : schedule_(proved.schedule), labels_(schedule_), versions_(proved.versions) {}

  std::size_t actions(std::size_t worker) const {
    return worker < schedule_.workers.size() ? schedule_.workers[worker].size() : 0;
  }
  const Action& action(std::size_t worker, std::size_t i) const {
    return schedule_.workers[worker][i];
  }
  /// The action as it is compared: without weights, which are compared as what they resolve to, and
  /// with the model's own loss, that of the last stage, as one loss whatever the number of stages.
  Action comparable(std::size_t worker, std::size_t i) const {
    Action own = action(worker, i);
    own.weights = {};
    if (!facts_of(own.kind).of_loss || own.loss == schedule_.shape.stages - 1) own.loss = -1;
    return own;
  }
  /// What the action reads: a version, and how far and by which rule it is predicted.
  WeightKey key(std::size_t worker, std::size_t i) const {
    return is_pass(action(worker, i).kind) ? versions_.workers[worker][i].key : WeightKey{};
  }
  const PredictionRule& rule(std::size_t worker, std::size_t i) const {
    return schedule_.rules[static_cast<std::size_t>(key(worker, i).rule)];
  }

  /// What the name does not say: " (scale 0.5)", " (loss of stage 3)"
  std::string details(std::size_t worker, std::size_t i) const {
    const Action& own = action(worker, i);
    std::vector<std::string> parts;
    if (own.scale != 1) parts.push_back(concat("scale ", own.scale));
    if (facts_of(own.kind).of_loss) parts.push_back(concat("loss of stage ", own.loss));
    return parts.empty() ? std::string() : concat(" (", join(parts, ", "), ")");
  }

  /// "F3 with weights 2→5(+3)"
  std::string name(std::size_t worker, std::size_t i) const {
    if (i >= actions(worker)) return "nothing";
    const std::string label = labels_.action(action(worker, i));
    if (!is_pass(action(worker, i).kind)) return label;
    const WeightKey of = key(worker, i);
    return concat(label, " with weights ", weights_text(of.version, of.ahead));
  }

 private:
  const Schedule& schedule_;
  const RenderLabels labels_;
  const Versions& versions_;
};

WorkerDifference difference_of(const Compared& a, const Compared& b, std::size_t worker) {
  WorkerDifference difference{.actions_a = a.actions(worker), .actions_b = b.actions(worker)};
  const std::size_t most = std::max(difference.actions_a, difference.actions_b);
  for (std::size_t i = 0; i < most; ++i) {
    const bool both = i < difference.actions_a && i < difference.actions_b;
    const bool same = both && a.comparable(worker, i) == b.comparable(worker, i);
    const bool weights = same && a.key(worker, i).version == b.key(worker, i).version &&
                         a.key(worker, i).ahead == b.key(worker, i).ahead &&
                         (a.key(worker, i).ahead == 0 || a.rule(worker, i) == b.rule(worker, i));
    if (weights)
      ++difference.same;
    else if (same)
      ++difference.other_weights;
    if (weights || difference.first) continue;
    difference.first = i;
    difference.first_a = a.name(worker, i);
    difference.first_b = b.name(worker, i);
    if (difference.first_a != difference.first_b) continue;
    difference.first_a += a.details(worker, i);
    difference.first_b += b.details(worker, i);
    if (difference.first_a == difference.first_b)
      difference.first_b += ", predicted by another rule";
  }
  return difference;
}

std::string line_of(std::size_t worker, const WorkerDifference& of) {
  const std::string begin = concat("worker ", worker, "    ");
  if (!of.first) return concat(begin, "the same ", counted(of.actions_a, "action"), "\n");
  const std::string counts = of.actions_a == of.actions_b
                                 ? counted(of.actions_a, "action")
                                 : concat(counted(of.actions_a, "action"), " and ", of.actions_b);
  return concat(begin, counts, ", ", of.same, " the same",
                of.other_weights > 0 ? concat(", ", of.other_weights, " with other weights") : "",
                "; first at place ", *of.first, ": ", of.first_a, " | ", of.first_b, "\n");
}

}  // namespace

std::vector<WorkerDifference> schedule_differences(const ProvedSchedule& a,
                                                   const ProvedSchedule& b) {
  const Compared first(a), second(b);
  std::vector<WorkerDifference> workers;
  const std::size_t most = std::max(a.schedule.workers.size(), b.schedule.workers.size());
  for (std::size_t w = 0; w < most; ++w) workers.push_back(difference_of(first, second, w));
  return workers;
}

std::string schedule_difference_text(const std::vector<WorkerDifference>& workers) {
  std::string text;
  std::size_t places = 0, same = 0, weights = 0;
  for (std::size_t w = 0; w < workers.size(); ++w) {
    text += line_of(w, workers[w]);
    places += std::max(workers[w].actions_a, workers[w].actions_b);
    same += workers[w].same;
    weights += workers[w].other_weights;
  }
  return concat(text, "in all      ", same, " of ", counted(places, "place"), " the same, ",
                weights, " with other weights, ", places - same - weights,
                " with another action\n");
}

}  // namespace pipewright
