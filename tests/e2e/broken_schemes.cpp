// SPDX-License-Identifier: Apache-2.0
// Schemes that are wrong on purpose, linked into a second build of the program: what a user meets
// who writes a scheme of his own and makes a mistake.
#include <algorithm>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class Broken final : public Scheme {
 public:
  explicit Broken(Options& options)
      : how_(options.choice(
            "how",
            {"no_update", "twice", "deadlock", "old_version", "no_backward", "fewer_updates"},
            "no_update", "What is wrong with the schedule.")) {}

  Schedule schedule(const PipelineShape& shape) const override {
    if (how_ == "old_version")
      return pipeline_schedule(shape, {.flush = true}, latest_weights, [](const PassPlace& pass) {
        return Weights::of_version(pass.minibatch + 1);
      });
    Schedule schedule = pipeline_schedule(shape, {.flush = true});
    std::vector<Action>& order = schedule.workers.front();
    const auto first = [&](ActionKind kind) {
      return std::ranges::find(order, kind, &Action::kind);
    };
    if (how_ == "no_update") order.pop_back();  // the last action of all: a gradient never used
    if (how_ == "fewer_updates") order.erase(first(ActionKind::Update));
    if (how_ == "no_backward") order.erase(first(ActionKind::Backward));
    if (how_ == "twice") order.insert(order.begin(), order.front());
    if (how_ == "deadlock") std::rotate(order.begin(), first(ActionKind::Backward), order.end());
    return schedule;
  }

 private:
  std::string how_;
};

}  // namespace

PIPEWRIGHT_SCHEME(broken, Broken, "Makes schedules that cannot be right.")

}  // namespace pipewright
