// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/rewrites/offload.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
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

/// Where the host copies of one worker go: behind which of its passes, which are numbered.
class Places {
 public:
  Places(const std::vector<Action>& actions, int ahead) {
    for (const Action& action : actions) {
      if (goes_on_beside(action.kind)) left_alone_.insert(microbatch_of(action));
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
    MicroBatch microbatch;
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
  const auto [stage, replica, minibatch, microbatch] = copy.microbatch;
  return {.kind = copy.kind,
          .stage = stage,
          .replica = replica,
          .minibatch = minibatch,
          .microbatch = microbatch,
          .loss = last_stage};
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
