// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/deadlock.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/schedule/invalid_schedule.h"

namespace pipewright {
namespace {

/// Follows waits from worker to worker.
class Chain {
 public:
  Chain(const Schedule& schedule, const PassIndex& index, const std::vector<Wait>& waits)
      : schedule_(schedule), index_(index), waits_(waits) {}

  Deadlock from(int worker) {
    std::vector<bool> seen(waits_.size(), false);
    while (worker >= 0 && wait_of(worker).what != Wait::For::Nothing && !seen[as_size(worker)]) {
      seen[as_size(worker)] = true;
      links_.push_back(worker);
      later_ = later_need(wait_of(worker));
      if (later_ != kNowhere) return {wait_of(worker).action, message("")};
      worker = wait_of(worker).worker;
    }
    const auto first = std::ranges::find(links_, worker);
    if (first == links_.end()) return {wait_of(links_.back()).action, message("")};
    return {wait_of(*first).action, message(concat(reached(links_.back(), worker), ": a circle"))};
  }

 private:
  const Wait& wait_of(int worker) const { return waits_[as_size(worker)]; }

  std::string name(ActionPlace place) const {
    return action_name(action_at(schedule_, place), schedule_.shape.microbatches);
  }

  /// An action that the waiting one needs, directly or through others, but that its own worker does
  /// later; kNowhere if there is none.
  ActionPlace later_need(const Wait& wait) const {
    if (wait.what != Wait::For::Input) return kNowhere;
    for (ActionPlace need = wait.input; need != kNowhere;
         need = index_.input_of(action_at(schedule_, need)))
      if (need.first == wait.action.first && need.second >= wait.action.second) return need;
    return kNowhere;
  }

  /// What the worker's action waits for, as the rest of a sentence that begins with it: `who` is
  /// "it" or "which", `whose` "its" or "whose".
  std::string reason(int worker, const std::string& who, const std::string& whose) const {
    const Wait& wait = wait_of(worker);
    const auto link = [&] {
      const int capacity = schedule_.shape.link_capacity;
      return concat(whose, " link to worker ", wait.worker, " already holds ",
                    counted(capacity, "message"), ", as many as it can");
    };
    switch (wait.what) {
      case Wait::For::Room: return link();
      case Wait::For::Reduction: return concat(whose, " replicas never reach the same reduction");
      case Wait::For::Turn:
        return concat(whose, " input is behind that of ", name(wait.input),
                      " on the link from worker ",
                      index_.input_of(action_at(schedule_, wait.input)).first, ", and ",
                      name(wait.input), " comes later on the same worker");
      case Wait::For::Receive:
        return concat(whose, " message waits until worker ", wait.worker, " receives it");
      case Wait::For::Engine:
        return concat(who, " waits for ", name(wait.input), " of worker ", wait.input.first,
                      ", which first sends a message to worker ", wait.worker);
      case Wait::For::Input:
      case Wait::For::Nothing: break;
    }
    if (wait.input == kNowhere) return concat("nothing produces ", whose, " input");
    const bool own = wait.input.first == wait.action.first;
    const std::string waiter =
        wait.beside ? concat(name({wait.action.first, wait.action.second + 1}), " beside it") : who;
    return concat(waiter, " waits for ", name(wait.input),
                  own ? std::string() : concat(" of worker ", wait.input.first));
  }

  /// Continues the message from what `worker` waits for to the action at which `other` is stuck.
  std::string reached(int worker, int other) const {
    const Wait& wait = wait_of(worker);
    const std::string next = name(wait_of(other).action);
    if (wait.what != Wait::For::Input) return concat(", and worker ", other, " is stuck at ", next);
    return wait.input == wait_of(other).action ? std::string() : concat(", queued behind ", next);
  }

  /// The end of the message if the chain ended at an action that the same worker does later; else
  /// "".
  std::string later_text() const {
    const Wait& wait = wait_of(links_.back());
    if (later_ == kNowhere) return {};
    if (later_ == wait.input) return ", which comes later on the same worker";
    return concat(" and so for ", name(later_), ", which comes later on worker ", later_.first,
                  " itself");
  }

  std::string message(const std::string& end) const {
    constexpr std::size_t kMost = 4;  // actions named; of more, those between are only counted
    const bool starts = wait_of(links_.front()).what != Wait::For::Receive;
    std::string text =
        concat("deadlock: ", name(wait_of(links_.front()).action), " can never ",
               starts ? "start" : "end", ", because ", reason(links_.front(), "it", "its"));
    std::size_t i = 1;
    if (links_.size() > kMost) {
      i = links_.size() - 1;
      text += concat(reached(links_.front(), links_[1]), ", … (", counted(i - 2, "more wait"), ")");
    }
    for (; i < links_.size(); ++i) {
      const bool cut = i > 1 && links_.size() > kMost;
      text += cut ? concat(", queued behind ", name(wait_of(links_[i]).action))
                  : reached(links_[i - 1], links_[i]);
      text += concat(", ", reason(links_[i], "which", "whose"));
    }
    const Action& first = action_at(schedule_, wait_of(links_.front()).action);
    return concat(text, later_text(), end, " (", spelled_out(first, schedule_.shape), ")");
  }

  const Schedule& schedule_;
  const PassIndex& index_;
  const std::vector<Wait>& waits_;
  std::vector<int> links_;  ///< workers, each of which waits for the next
  ActionPlace later_ = kNowhere;
};

}  // namespace

Deadlock explain_deadlock(const Schedule& schedule, const PassIndex& index,
                          const std::vector<Wait>& waits) {
  const auto first =
      std::ranges::find_if(waits, [](const Wait& wait) { return wait.what != Wait::For::Nothing; });
  PIPEWRIGHT_CHECK(first != waits.end(), "a schedule that has come to its end stops nowhere");
  return Chain(schedule, index, waits).from(static_cast<int>(first - waits.begin()));
}

}  // namespace pipewright
