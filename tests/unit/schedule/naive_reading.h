// SPDX-License-Identifier: Apache-2.0
/// A second, independent implementation of the rules of schedules, as plain as possible. Its
/// verdicts are compared with those of prove().
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/base/as_size.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"

namespace pipewright::naive {

inline const Action& at(const Schedule& schedule, ActionPlace place) {
  return schedule.workers[as_size(place.first)][as_size(place.second)];
}

inline bool is_backward(const Action& a) {
  return a.kind == ActionKind::Backward || a.kind == ActionKind::BackwardInput;
}

inline bool is_copy(const Action& a) {
  return a.kind == ActionKind::Offload || a.kind == ActionKind::Fetch;
}

/// Identity of a pass, without its position: its kind (Forward, Head, Recompute, a backward of a
/// loss (whole, relay or first half), or the second half of one), stage, mini-batch and so on. Host
/// copies have one, too.
using Pass = std::array<int, 6>;
inline Pass pass(char what, const Action& a, int stage, int loss) {
  return {what, stage, a.replica, a.minibatch, a.microbatch, loss};
}
inline Pass pass(const Action& a) {
  if (a.kind == ActionKind::Forward) return pass('F', a, a.stage, -1);
  if (a.kind == ActionKind::Head) return pass('H', a, a.stage, -1);
  if (a.kind == ActionKind::Recompute) return pass('r', a, a.stage, -1);
  if (is_copy(a)) return pass(a.kind == ActionKind::Offload ? 'o' : 'f', a, a.stage, -1);
  return pass(a.kind == ActionKind::BackwardWeight ? 'W' : 'B', a, a.stage, a.loss);
}

/// The pass whose output this action needs; `what` is 0 if there is none.
inline Pass input(const Schedule& schedule, const Action& a) {
  const bool last = a.stage == schedule.shape.stages - 1;
  if (a.kind == ActionKind::Forward && a.stage > 0) return pass('F', a, a.stage - 1, -1);
  if (a.kind == ActionKind::Head || a.kind == ActionKind::Recompute || is_copy(a))
    return pass('F', a, a.stage, -1);
  if (a.kind == ActionKind::BackwardWeight) return pass('B', a, a.stage, a.loss);
  if (!is_backward(a)) return {};
  if (a.loss > a.stage) return pass('B', a, a.stage + 1, a.loss);
  return last ? pass('F', a, a.stage, -1) : pass('H', a, a.stage, -1);
}

/// Index of another replica's Reduce on its worker.
inline int place_of_reduce(const Schedule& schedule, const Action& like, int replica) {
  const auto& actions = schedule.workers[as_size(schedule.shape.worker_of(like.stage, replica))];
  const auto same = [&](const Action& each) {
    return each.kind == like.kind && each.stage == like.stage && each.replica == replica &&
           each.minibatch == like.minibatch;
  };
  return static_cast<int>(std::find_if(actions.begin(), actions.end(), same) - actions.begin());
}

/// Whether a part of the weights' gradient is made.
inline bool gives_gradient(const Action& a) {
  return a.kind == ActionKind::Backward || a.kind == ActionKind::BackwardWeight ||
         a.kind == ActionKind::Head;
}

/// Checks that an order of all actions respects each worker's own order and every input and, with
/// replicas, that a reduction comes after the actions before it on each replica; and, where updates
/// meet, that no mini-batch begins before all gradients of the earlier ones are made. Returns the
/// fault.
inline std::string fault_of_order(const Schedule& schedule, const std::vector<ActionPlace>& order) {
  std::vector<int> done(schedule.workers.size(), 0);
  std::set<Pass> made;
  std::multiset<int> gradients;  // to come, by mini-batch
  std::size_t actions = 0;
  for (const auto& worker : schedule.workers) {
    actions += worker.size();
    for (const Action& a : worker)
      if (gives_gradient(a)) gradients.insert(a.minibatch);
  }
  if (order.size() != actions) return "not every action once";
  for (const ActionPlace& place : order) {
    const Action& a = at(schedule, place);
    const std::string name = action_name(a, schedule.shape.microbatches);
    if (done[as_size(place.first)]++ != place.second) return name + " out of its worker's order";
    const Pass needed = input(schedule, a);
    if (needed[0] != 0 && !made.contains(needed)) return name + " before its input";
    if (schedule.updates_meet && !gradients.empty() && *gradients.begin() < a.minibatch)
      return name + " before all gradients of a mini-batch before it";
    if (gives_gradient(a)) gradients.erase(gradients.find(a.minibatch));
    if (a.kind == ActionKind::Reduce)
      for (int replica = 0; replica < schedule.shape.replicas; ++replica)
        if (done[as_size(schedule.shape.worker_of(a.stage, replica))] <
            place_of_reduce(schedule, a, replica))
          return name + " before a gradient of replica " + std::to_string(replica);
    if (a.kind != ActionKind::Reduce && a.kind != ActionKind::Update) made.insert(pass(a));
  }
  return "";
}

namespace detail {

inline std::string fault_of_passes(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  std::map<Pass, int> wanted, there;
  for (int r = 0; r < shape.replicas; ++r)
    for (int m = 0; m < shape.minibatches; ++m)
      for (int u = 0; u < shape.microbatches; ++u)
        for (int k = 0; k < shape.stages; ++k) {
          wanted[{'F', k, r, m, u, -1}] = 1;
          if (!shape.training) continue;
          for (const int loss : schedule.learns_from[as_size(k)])
            wanted[{'B', k, r, m, u, loss}] = 1;
          for (const int site : schedule.auxiliary)
            if (site == k) wanted[{'H', k, r, m, u, -1}] = 1;
        }
  std::map<Pass, int> relays, halves, again;
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (const Action& a : schedule.workers[w]) {
      if (a.stage < 0 || a.stage >= shape.stages || a.replica < 0 || a.replica >= shape.replicas)
        return "of a stage that is not";
      if (as_size(shape.worker_of(a.stage, a.replica)) != w) return "on another's worker";
      const bool half = a.kind == ActionKind::BackwardWeight;
      if ((is_backward(a) || half) && (a.loss < a.stage || a.loss >= shape.stages))
        return "of no loss there";
      if (a.kind == ActionKind::Head && a.loss != a.stage) return "a head of another stage's loss";
      if (a.kind == ActionKind::Recompute && !shape.training) return "no forward";
      if (a.kind == ActionKind::Recompute) {
        if (++again[pass(a)] > 1) return "recomputed twice";
      } else if (is_copy(a)) {
        if (!shape.training || a.minibatch < 0 || a.minibatch >= shape.minibatches ||
            a.microbatch < 0 || a.microbatch >= shape.microbatches)
          return "a copy of nothing";
      } else if (a.kind == ActionKind::BackwardInput)
        ++relays[pass(a)];
      else if (half)
        ++halves[pass('B', a, a.stage, a.loss)];
      else if (a.kind != ActionKind::Reduce && a.kind != ActionKind::Update)
        ++there[pass(a)];
      else if (!shape.training)
        return "no forward";
    }
  for (const auto& [half, times] : halves) {  // together with its first half it is a whole backward
    if (times > 1 || !relays.contains(half) || relays.at(half) > 1) return "not two halves";
    relays.erase(half);
    ++there[half];
  }
  if (there != wanted) return "a pass missing, twice or not wanted";
  for (const auto& [relay, times] : relays) {
    Pass before = relay;
    --before[1];
    if (times > 1 || wanted.contains(relay)) return "a relay twice";
    if (!there.contains(before) && !relays.contains(before)) return "a relay to nobody";
  }
  return "";
}

/// Checks that each recomputation comes before all backwards.
inline std::string fault_of_recomputations(const Schedule& schedule) {
  for (const auto& worker : schedule.workers) {
    std::set<Pass> too_late;
    for (const Action& a : worker) {
      if (is_backward(a)) too_late.insert(pass('r', a, a.stage, -1));
      if (a.kind != ActionKind::Recompute) continue;
      if (too_late.contains(pass(a))) return "recomputed too late";
    }
  }
  return "";
}

/// Checks that what is copied to the host comes back once before it is needed, and is needed then.
inline std::string fault_of_copies(const Schedule& schedule) {
  for (const auto& worker : schedule.workers) {
    std::map<Pass, std::string> stories;  // by forward: its actions in order, one letter each
    for (const Action& a : worker)
      if (a.kind != ActionKind::Reduce && a.kind != ActionKind::Update)
        stories[pass('F', a, a.stage, -1)] += static_cast<char>(pass(a)[0]);
    for (const auto& [forward, story] : stories) {
      if (story.find_first_of("of") == std::string::npos) continue;
      // A forward and heads; away and back; then passes, but no recomputation.
      const std::size_t away = story.find('o');
      if (away == std::string::npos || story.substr(away, 2) != "of") return "not away and back";
      const std::string before = story.substr(0, away), after = story.substr(away + 2);
      if (before.find('F') == std::string::npos ||
          before.find_first_not_of("FH") != std::string::npos)
        return "moved too early or too late";
      if (after.empty() || after.find_first_not_of("HBW") != std::string::npos)
        return "moved for nothing";
    }
  }
  return "";
}

/// Checks that each gradient is applied by one later update of its stage, and that all gradients of
/// an update are reduced once and together.
inline std::string fault_of_gradients(const Schedule& schedule) {
  for (const auto& worker : schedule.workers) {
    struct Gradients {
      int minibatch = -1;  ///< mini-batch of the last gradient not applied yet; −1: none
      bool reduced = false;
    };
    std::map<std::pair<int, int>, Gradients> stages;
    for (const Action& a : worker) {
      Gradients& waiting = stages[{a.stage, a.replica}];
      const bool reduce = a.kind == ActionKind::Reduce, update = a.kind == ActionKind::Update;
      if ((reduce || update) && a.minibatch != waiting.minibatch) return "nothing to apply";
      if (update && waiting.reduced != (schedule.shape.replicas > 1)) return "not reduced";
      if (update) waiting = {};
      if (!update && waiting.reduced && a.kind != ActionKind::Forward &&
          a.kind != ActionKind::BackwardInput && a.kind != ActionKind::Recompute && !is_copy(a))
        return "reduced too early";
      if (reduce) waiting.reduced = true;
      if (a.kind == ActionKind::Backward || a.kind == ActionKind::Head ||
          a.kind == ActionKind::BackwardWeight)
        waiting.minibatch = a.minibatch;
    }
    for (const auto& [stage, waiting] : stages)
      if (waiting.minibatch >= 0) return "a gradient never applied";
  }
  return "";
}

/// Checks that on each stage slices go forward in order and, for each loss, back in reverse.
inline std::string fault_of_slices(const Schedule& schedule) {
  const int slices = schedule.shape.slices;
  for (const auto& worker : schedule.workers)
    for (const Action& a : worker)
      if (slices > 1 && (a.kind == ActionKind::Offload || a.kind == ActionKind::Fetch))
        return "a slice on the host";
  for (const auto& worker : schedule.workers) {
    std::map<Pass, int> last;  // forwards and backwards of a micro-batch: the slice of the last
    for (const Action& a : worker) {
      if (a.kind != ActionKind::Forward && !is_backward(a)) continue;
      Pass whole = pass(a);
      whole[4] = a.microbatch / slices;
      const int slice = a.microbatch % slices, step = a.kind == ActionKind::Forward ? 1 : -1;
      const int before = last.contains(whole) ? last.at(whole) : step > 0 ? -1 : slices;
      if (slice != before + step) return "a slice out of order";
      last[whole] = slice;
    }
  }
  return "";
}

/// Checks that what is to run beside the next action is a forward beside another pass's backward.
inline std::string fault_of_pairs(const Schedule& schedule) {
  for (const auto& worker : schedule.workers)
    for (std::size_t i = 0; i < worker.size(); ++i) {
      if (!worker[i].with_next) continue;
      if (i + 1 == worker.size() || worker[i].kind != ActionKind::Forward) return "no pair";
      const Action& next = worker[i + 1];
      const bool own = pass('F', next, next.stage, -1) == pass(worker[i]);
      if (!is_backward(next) || own) return "no pair";
    }
  return "";
}

/// Checks that no worker is at a later mini-batch when an update waits for all gradients of its
/// own.
inline std::string fault_of_meetings(const Schedule& schedule) {
  for (const auto& worker : schedule.workers) {
    int newest = 0;
    for (const Action& a : worker) {
      if (schedule.updates_meet && schedule.shape.training && a.minibatch < newest)
        return "a mini-batch out of turn";
      newest = std::max(newest, a.minibatch);
    }
  }
  return "";
}

inline std::string fault_of_progress(const Schedule& schedule) {
  std::vector<std::size_t> done(schedule.workers.size(), 0);
  std::set<Pass> made;
  auto next = [&](std::size_t w) {
    return done[w] < schedule.workers[w].size() ? &schedule.workers[w][done[w]] : nullptr;
  };
  auto all_reduce = [&](const Action& a) {
    for (int r = 0; r < schedule.shape.replicas; ++r) {
      const Action* other = next(as_size(schedule.shape.worker_of(a.stage, r)));
      if (other == nullptr || other->kind != a.kind || other->stage != a.stage ||
          other->minibatch != a.minibatch)
        return false;
    }
    for (int r = 0; r < schedule.shape.replicas; ++r)
      ++done[as_size(schedule.shape.worker_of(a.stage, r))];
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t w = 0; w < done.size(); ++w) {
      const Action* a = next(w);
      if (a == nullptr) continue;
      if (a->kind == ActionKind::Reduce) {
        moved = all_reduce(*a) || moved;
        continue;
      }
      const auto has_input = [&](const Action& of) {
        const Pass needed = input(schedule, of);
        return needed[0] == 0 || made.contains(needed);
      };
      const bool pair = a->with_next;
      if (!has_input(*a) || (pair && !has_input(*(a + 1)))) continue;
      if (a->kind != ActionKind::Update) made.insert(pass(*a));
      if (pair) made.insert(pass(*(a + 1)));
      done[w] += pair ? 2 : 1;
      moved = true;
    }
  }
  for (std::size_t w = 0; w < done.size(); ++w)
    if (next(w) != nullptr) return "a deadlock";
  return "";
}

/// Checks that every version used exists, that predictions start from the latest version, that both
/// halves of a backward use the same weights, a recomputation those of its forward or of all its
/// backwards, and all forwards of a gradient the same ones if its update compares with them.
inline std::string fault_of_weights(const Schedule& schedule) {
  std::map<std::pair<int, int>, int> updates;
  std::map<Pass, Weights> of_forward, of_half, of_replay;
  for (const auto& worker : schedule.workers) {
    std::set<std::array<int, 5>> predicted;
    for (const Action& a : worker) {
      int& latest = updates[{a.stage, a.replica}];
      if (a.kind == ActionKind::Update) ++latest;
      if (a.kind == ActionKind::Update && schedule.updates_compare) {
        std::optional<Weights> read;
        for (int u = 0; u < schedule.shape.microbatches; ++u) {
          const auto found = of_forward.find({'F', a.stage, a.replica, a.minibatch, u, -1});
          if (found == of_forward.end()) continue;
          if (read && *read != found->second) return "no one version to compare with";
          read = found->second;
        }
      }
      if (a.kind == ActionKind::Update || a.kind == ActionKind::Reduce || is_copy(a)) continue;
      Weights weights = a.weights;
      const Pass forward = pass('F', a, a.stage, -1);
      if (weights.source == Weights::Source::OfForward) {
        if (!of_forward.contains(forward)) return "the weights of a forward to come";
        weights = of_forward.at(forward);
      } else if (weights.source == Weights::Source::Latest) {
        weights.version = latest;
      }
      if (weights.version < -schedule.earlier_of(a.stage) || weights.version > latest)
        return "a version that is not";
      if (weights.ahead != 0 &&
          predicted.insert({a.stage, a.replica, weights.version, weights.ahead, weights.rule})
              .second &&
          weights.version != latest)
        return "a prediction made too late";
      weights.source = Weights::Source::Version;
      if (weights.ahead == 0) weights.rule = 0;
      if (a.kind == ActionKind::Forward) of_forward[forward] = weights;
      const Pass replay = pass('r', a, a.stage, -1);
      if (a.kind == ActionKind::Recompute && weights != of_forward.at(forward))
        of_replay[replay] = weights;
      if (is_backward(a) && of_replay.contains(replay) && of_replay.at(replay) != weights)
        return "recomputed with other weights";
      if (a.kind == ActionKind::BackwardInput) of_half[pass(a)] = weights;
      if (a.kind == ActionKind::BackwardWeight && of_half[pass('B', a, a.stage, a.loss)] != weights)
        return "halves of other weights";
    }
  }
  return "";
}

}  // namespace detail

/// Why a schedule cannot run with unbounded links; "" if it can.
inline std::string fault(const Schedule& schedule) {
  for (const auto& find :
       {detail::fault_of_passes, detail::fault_of_recomputations, detail::fault_of_copies,
        detail::fault_of_gradients, detail::fault_of_pairs, detail::fault_of_slices,
        detail::fault_of_meetings, detail::fault_of_progress, detail::fault_of_weights})
    if (const std::string found = find(schedule); !found.empty()) return found;
  return "";
}

}  // namespace pipewright::naive
