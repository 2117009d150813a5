// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/rewrites/offload.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/schedule/invalid_schedule.h"

namespace pipewright {
namespace {

using MicroBatch = std::array<int, 4>;  ///< stage, replica, mini-batch, micro-batch

MicroBatch microbatch_of(const Action& action) {
  return {action.stage, action.replica, action.minibatch, action.microbatch};
}

/// The host copies of a worker, by the pass, counted from 0, behind which they go.
std::map<int, std::vector<Action>> copies_of(const std::vector<Action>& actions, int ahead,
                                             int last_stage) {
  struct Use {
    int last = 0;       ///< pass before the first backward
    int backward = -1;  ///< the first one
    bool left_alone = false;
  };
  std::map<MicroBatch, Use> uses;
  std::map<int, MicroBatch> backwards;
  std::vector<bool> with_next;  // of each pass
  for (const Action& action : actions) {
    if (!of_microbatch(action.kind)) continue;
    Use& use = uses[microbatch_of(action)];
    use.left_alone |= facts_of(action.kind).restores != 0;
    if (!is_pass(action.kind)) continue;
    const int pass = static_cast<int>(with_next.size());
    with_next.push_back(action.with_next);
    if (use.backward >= 0) continue;
    (is_part_of_backward(action.kind) ? use.backward : use.last) = pass;
    if (use.backward == pass) backwards.emplace(pass, microbatch_of(action));
  }
  std::map<int, std::vector<Action>> copies;
  for (const auto& [backward, microbatch] : backwards) {
    const Use& use = uses.at(microbatch);
    const int offload = use.last + (with_next[as_size(use.last)] ? 1 : 0);
    int fetch = backward - ahead - 1;
    while (fetch > offload && with_next[as_size(fetch)]) --fetch;  // it stays beside the next one
    if (use.left_alone || fetch <= offload) continue;
    for (const ActionKind kind : {ActionKind::Offload, ActionKind::Fetch})
      copies[kind == ActionKind::Offload ? offload : fetch].push_back({.kind = kind,
                                                                       .stage = microbatch[0],
                                                                       .replica = microbatch[1],
                                                                       .minibatch = microbatch[2],
                                                                       .microbatch = microbatch[3],
                                                                       .loss = last_stage});
  }
  for (auto& [pass, behind] : copies)  // fetches take memory, so they come last
    std::ranges::stable_sort(behind, {}, &Action::kind);
  return copies;
}

/// Follows where what each forward keeps is.
class OffloadCheck {
 public:
  OffloadCheck(const Schedule& schedule, const PassIndex& index)
      : schedule_(schedule), slots_(index.slots()), kept_(slots_.forwards()) {}

  void run() {
    for_each_action(schedule_, [&](ActionPlace place, const Action& a) { step(place, a); });
    for (const Kept& kept : kept_) {
      if (kept.state == Kept::State::OnHost)
        refuse(schedule_, kept.copy, "moves activations to the host that no fetch brings back");
      if (kept.state == Kept::State::Fetched)
        refuse(schedule_, kept.copy, "brings back activations that no later pass needs");
    }
  }

 private:
  /// Where what a forward keeps is.
  struct Kept {
    enum class State : std::uint8_t { Nowhere, OnDevice, Needed, OnHost, Fetched };
    State state = State::Nowhere;  ///< Needed: a backward has begun, or a recomputation has run
    ActionPlace copy = kNowhere;   ///< the last offload or fetch
    bool moved = false;            ///< by an offload
  };

  void step(ActionPlace place, const Action& a) {
    if (!of_microbatch(a.kind)) return;
    using enum Kept::State;
    Kept& kept = kept_[slots_.forward(a, a.stage)];
    if (a.kind == ActionKind::Forward) {
      kept.state = kept.state == Nowhere ? OnDevice : kept.state;
    } else if (a.kind == ActionKind::Offload) {
      if (kept.state == Nowhere) refuse(schedule_, place, "comes before its forward");
      if (kept.state != OnDevice)
        refuse(schedule_, place, "comes after a backward or a recomputation of its micro-batch");
      kept = {OnHost, place, true};
    } else if (a.kind == ActionKind::Fetch) {
      if (kept.state != OnHost)
        refuse(schedule_, place, "has no offload of the same micro-batch before it");
      kept = {Fetched, place, true};
    } else if (kept.state == OnHost) {
      refuse(schedule_, place,
             "needs activations that an offload has moved to the host, and no fetch before it "
             "brings them back");
    } else if (a.kind == ActionKind::Recompute && kept.moved) {
      refuse(schedule_, place, "makes activations again that an offload has moved");
    } else if (a.kind != ActionKind::Head || kept.state == Fetched) {
      kept.state = Needed;
    }
  }

  const Schedule& schedule_;
  const PassSlots& slots_;
  std::vector<Kept> kept_;  ///< by PassSlots::forward()
};

}  // namespace

Schedule with_offload(Schedule schedule, int ahead) {
  for (auto& worker : schedule.workers) {
    const auto copies = copies_of(worker, ahead, schedule.shape.stages - 1);
    std::vector<Action> actions;
    int pass = 0;
    for (const Action& action : worker) {
      actions.push_back(action);
      if (!is_pass(action.kind)) continue;
      if (const auto behind = copies.find(pass++); behind != copies.end())
        actions.insert(actions.end(), behind->second.begin(), behind->second.end());
    }
    worker = std::move(actions);
  }
  return schedule;
}

ScheduleRewrite offloading(int ahead) {
  const auto remark = [ahead](const Schedule& schedule) -> std::string {
    if (has_host_copies(schedule)) return {};
    return concat("pipeline.offload moves nothing: at no stage do more than ", ahead,
                  ahead == 1 ? " pass" : " passes",
                  " of its worker run between a forward and its backward.");
  };
  return {.option = "pipeline.offload",
          .apply = [ahead](Schedule schedule) { return with_offload(std::move(schedule), ahead); },
          .remark = remark,
          .not_in_slices =
              "keys of a slice cannot be on the host while later slices read them; "
              "expected pipeline.offload: never"};
}

bool has_host_copies(const Schedule& schedule) {
  return any_action(schedule, [](const Action& action) { return goes_on_beside(action.kind); });
}

void check_host_copies(const Schedule& schedule, const PassIndex& index) {
  if (has_host_copies(schedule)) OffloadCheck(schedule, index).run();
}

}  // namespace pipewright
