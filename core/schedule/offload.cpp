// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/offload.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

using MicroBatch = std::array<int, 4>;  ///< stage, replica, mini-batch, micro-batch

MicroBatch microbatch_of(const Action& action) {
  return {action.stage, action.replica, action.minibatch, action.microbatch};
}

/// Where the host copies of one worker go: behind which of its passes, which are numbered.
class Places {
 public:
  Places(const std::vector<Action>& actions, int ahead) {
    for (const Action& action : actions) {
      if (is_host_copy(action.kind)) left_alone_.insert(microbatch_of(action));
      if (is_pass(action.kind)) add(action);
    }
    for (const auto& [backward, microbatch] : backwards_) {
      const Span& span = spans_.at(microbatch);
      if (left_alone_.contains(microbatch)) continue;
      const int offload = pairs_.contains(span.last) ? span.last + 1 : span.last;
      int fetch = backward - ahead - 1;
      while (fetch > offload && pairs_.contains(fetch)) --fetch;  // it stays beside the next one
      if (fetch <= offload) continue;
      copies_[offload].push_back({ActionKind::Offload, microbatch});
      copies_[fetch].push_back({ActionKind::Fetch, microbatch});
    }
    for (auto& [pass, copies] : copies_)  // fetches take memory, so they come last
      std::ranges::stable_sort(copies, {}, &Copy::kind);
  }

  struct Copy {
    ActionKind kind;
    MicroBatch of;
  };
  /// The copies behind that pass, in their order.
  std::vector<Copy> behind(int pass) const {
    const auto found = copies_.find(pass);
    return found == copies_.end() ? std::vector<Copy>() : found->second;
  }

 private:
  /// The last pass of a micro-batch before its first backward.
  struct Span {
    int last = 0;
    bool ended = false;
  };

  void add(const Action& pass) {
    const MicroBatch microbatch = microbatch_of(pass);
    if (pass.kind == ActionKind::Recompute) left_alone_.insert(microbatch);
    if (pass.with_next) pairs_.insert(passes_);
    Span& span = spans_[microbatch];
    if (!is_part_of_backward(pass.kind) && !span.ended) span.last = passes_;
    if (is_part_of_backward(pass.kind) && !std::exchange(span.ended, true))
      backwards_.emplace(passes_, microbatch);
    ++passes_;
  }

  int passes_ = 0;
  std::set<int> pairs_;  ///< forwards beside the next pass
  std::set<MicroBatch> left_alone_;
  std::map<MicroBatch, Span> spans_;
  std::map<int, MicroBatch> backwards_;  ///< first backward → its micro-batch
  std::map<int, std::vector<Copy>> copies_;
};

Action copy_of(const Places::Copy& copy, int last_stage) {
  const auto [stage, replica, minibatch, microbatch] = copy.of;
  return {.kind = copy.kind,
          .stage = stage,
          .replica = replica,
          .minibatch = minibatch,
          .microbatch = microbatch,
          .loss = last_stage};
}

}  // namespace

Schedule with_offload(Schedule schedule, int ahead) {
  for (auto& worker : schedule.workers) {
    const Places places(worker, ahead);
    std::vector<Action> actions;
    int pass = 0;
    for (const Action& action : worker) {
      actions.push_back(action);
      if (!is_pass(action.kind)) continue;
      for (const Places::Copy& copy : places.behind(pass++))
        actions.push_back(copy_of(copy, schedule.shape.stages - 1));
    }
    worker = std::move(actions);
  }
  return schedule;
}

std::string offload_remark(const Schedule& schedule, int ahead) {
  const auto copies = [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& a) { return is_host_copy(a.kind); });
  };
  if (std::ranges::any_of(schedule.workers, copies)) return {};
  return concat("pipeline.offload moves nothing: at no stage do more than ", ahead,
                ahead == 1 ? " pass" : " passes",
                " of its worker run between a forward and its backward.");
}

}  // namespace pipewright
