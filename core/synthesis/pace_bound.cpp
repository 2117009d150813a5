// SPDX-License-Identifier: Apache-2.0
// The pace is at least the time of each worker from its first pass to its last, so each worker
// gives a bound. It is busy for all of its work, and idle in two windows:
//  - before its first backward it can only do forwards, as many as it may hold, but that backward
//    comes no sooner than micro-batch 0 has gone to the last stage and back;
//  - behind its last forward it can only do the backwards of what it holds, but the last of them
//    comes no sooner than the last micro-batch has gone to the last stage and back.
// The windows do not overlap where it cannot hold all micro-batches at once. It also does the
// forward of micro-batch i + c only when i is no longer held, if it may hold c of them. It begins a
// mini-batch behind the update of the one before, and all micro-batches of that have crossed each
// link by then, one after the other. Where mini-batches may overlap, idle windows do, too, and only
// the last two of these bounds remain. Every link and bus is a bound by itself. A
// worker with several stages may begin a mini-batch at one before it ends the last at another, even
// where weights are never stale; bounds of idle windows then hold for some schedules only.
#include "core/synthesis/pace_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

/// Passes that a worker may do within a window: how many, and what each takes and occupies.
struct Item {
  double count = 0, seconds = 0, held = 0;
};

/// The most seconds of items that fit into the room together. Exact where all occupy as much, else
/// parts of items count, too.
double most_seconds(std::vector<Item> items, double room) {
  std::ranges::sort(
      items, [](const Item& a, const Item& b) { return a.seconds * b.held > b.seconds * a.held; });
  const bool alike =
      std::ranges::all_of(items, [&](const Item& item) { return item.held == items.front().held; });
  double sum = 0;
  for (const Item& item : items) {
    double fitting = item.held == 0 ? item.count : room / item.held + kSumRounding;
    if (alike) fitting = std::floor(fitting);
    const double taken = std::clamp(fitting, 0.0, item.count);
    sum += taken * item.seconds;
    room -= taken * item.held;
  }
  return sum;
}

class WorkerBound {
 public:
  WorkerBound(const OrderTask& task, int worker, bool in_turn)
      : task_(task), worker_(worker), room_(task.room[as_size(worker)]), in_turn_(in_turn) {
    for (int stage = 0; stage < task.stages(); ++stage)
      if (task.worker_of[as_size(stage)] == worker) stages_.push_back(stage);
  }

  PaceBound find() {
    if (stages_.empty()) return bound_;
    raise(work(task_.microbatches) + updates(), "computes so long for each mini-batch");
    if (!in_turn_) return of_overlapping_minibatches();
    const double before = bound_.seconds;
    const double fill = fill_idle(), drain = drain_idle();
    const bool apart = held() * task_.microbatches > room_;
    raise(work(task_.microbatches) + updates() + (apart ? fill + drain : std::max(fill, drain)),
          "computes, and waits while the pipeline fills and drains");
    raise(rounds(drain), round_text());
    const double in_turn = bound_.seconds;
    raise_by_update();
    bound_.in_turn = stages_.size() > 1 && in_turn > before && in_turn == bound_.seconds;
    return bound_;
  }

 private:
  /// `why`: what the worker does, without its name.
  void raise(double seconds, const std::string& why) {
    if (!(seconds > bound_.seconds)) return;
    bound_.seconds = seconds;
    bound_.why = concat("worker ", worker_, " ", why);
  }

  /// How many micro-batches its first stage may hold at once.
  double at_once() const {
    return std::floor(room_ / task_.held[as_size(stages_.front())] + kSumRounding);
  }
  std::string round_text() const {
    const double most = std::clamp(at_once(), 0.0, static_cast<double>(task_.passes()));
    return concat("may hold ", counted(static_cast<int>(most), "micro-batch"),
                  most == 1 ? " at once, which goes" : " at once, which go",
                  " to the last stage and back before it begins ",
                  most == 1 ? "another" : "others");
  }

  double seconds(int stage, Part part) const { return task_.seconds_of({stage, part}); }
  double backward(int stage) const {
    return seconds(stage, Part::Backward) + seconds(stage, Part::Weight);
  }

  double work(int microbatches) const {
    double sum = 0;
    for (const int stage : stages_)
      sum += microbatches * (seconds(stage, Part::Forward) + backward(stage));
    return sum;
  }
  double updates() const {
    double sum = 0;
    for (const int stage : stages_) sum += task_.update[as_size(stage)];
    return sum;
  }
  /// Seconds of a micro-batch at all stages of the worker together.
  double held() const {
    double sum = 0;
    for (const int stage : stages_) sum += task_.held[as_size(stage)];
    return sum;
  }

  /// From the end of a micro-batch's forward at `from` to the beginning of its backward at `to`.
  double way(int from, int to) const {
    double sum = 0;
    for (int stage = from + 1; stage < task_.stages(); ++stage)
      sum += task_.forward_delay[as_size(stage - 1)] + seconds(stage, Part::Forward);
    for (int stage = task_.stages() - 1; stage > to; --stage)
      sum += seconds(stage, Part::Backward) + task_.backward_delay[as_size(stage)];
    return sum;
  }

  /// The most seconds that passes other than those of one micro-batch at the first stage take in a
  /// window. `seconds`: of such a pass at a stage.
  double most_work(const std::function<double(int stage)>& seconds) const {
    const int first = stages_.front();
    std::vector<Item> items;
    for (const int stage : stages_)
      items.push_back({task_.microbatches - (stage == first ? 1.0 : 0.0), seconds(stage),
                       task_.held[as_size(stage)]});
    return most_seconds(items, room_ - task_.held[as_size(first)]);
  }

  double fill_idle() const {
    const double work = most_work([&](int stage) { return seconds(stage, Part::Forward); });
    return std::max(0.0, way(stages_.front(), stages_.back()) - work);
  }

  double drain_idle() const {
    const int first = stages_.front();
    const double work = most_work([&](int stage) { return backward(stage); });
    const double other_updates = updates() - task_.update[as_size(first)];
    return std::max(0.0, way(stages_.back(), first) - work - other_updates);
  }

  /// Of the worker's first stage, whose passes of one micro-batch are the farthest apart: the
  /// forward of micro-batch i + c comes behind the last backward of i, if it may hold c of them.
  PaceBound of_overlapping_minibatches() {
    const int first = stages_.front();
    const double round = seconds(first, Part::Forward) + way(first, first) + backward(first);
    raise(round * task_.microbatches / at_once(), round_text());
    raise_by_update();
    return bound_;
  }

  /// Of the same stage: mini-batch i + S + 1 begins behind the update of i, if weights may be S
  /// updates old.
  void raise_by_update() {
    const int first = stages_.front();
    raise((longest_way(first) + backward(first) - seconds(first, Part::Backward) +
           task_.update[as_size(first)]) /
              (task_.staleness + 1.0),
          concat("begins a mini-batch after the update by the one ",
                 task_.staleness == 0
                     ? "before it"
                     : concat(task_.staleness + 1.0, " before it, as weights may be ",
                              counted(task_.staleness, "update"), " old")));
  }

  /// From the beginning of a mini-batch's first forward at a stage to the end of its last backward
  /// there: some stage between does all of its forwards and backwards in turn, and some link
  /// carries all of its messages.
  double longest_way(int first) const {
    double longest = 0, there = 0;
    for (int stage = first; stage < task_.stages(); ++stage) {
      const double passes = seconds(stage, Part::Forward) + seconds(stage, Part::Backward);
      longest = std::max(longest, there + task_.microbatches * passes + way_back(stage, first));
      there += seconds(stage, Part::Forward) + task_.forward_delay[as_size(stage)];
    }
    double sent = 0;
    for (int stage = first; stage + 1 < task_.stages(); ++stage)
      sent = std::max(
          {sent, task_.forward_sent[as_size(stage)], task_.backward_sent[as_size(stage + 1)]});
    return std::max(longest, seconds(first, Part::Forward) + way(first, first) +
                                 seconds(first, Part::Backward) + (task_.microbatches - 1) * sent);
  }

  /// From the end of a backward at `from` to the end of the same micro-batch's at `to`.
  double way_back(int from, int to) const {
    double sum = 0;
    for (int stage = from; stage > to; --stage)
      sum += task_.backward_delay[as_size(stage)] + seconds(stage - 1, Part::Backward);
    return sum;
  }

  /// Of the worker's first stage, which holds a micro-batch the longest.
  double rounds(double drain) const {
    const int first = stages_.front();
    if (!(at_once() < task_.microbatches)) return 0;
    const int most = static_cast<int>(at_once());
    if (most <= 0) return kUnlimited;
    const double round = seconds(first, Part::Forward) + way(first, first) + backward(first);
    const int full = (task_.microbatches - 1) / most;
    const double last = std::max(round, work(task_.microbatches - full * most) + drain);
    return full * round + last + task_.update[as_size(first)];
  }

  const OrderTask& task_;
  int worker_;
  double room_;
  bool in_turn_;  ///< whether it ends each mini-batch before it begins the next
  PaceBound bound_;
  std::vector<int> stages_;  ///< that the worker holds, ascending
};

PaceBound largest_bound(const OrderTask& task, bool in_turn) {
  PaceBound largest;
  for (int worker = 0; worker < task.workers; ++worker)
    if (const PaceBound bound = WorkerBound(task, worker, in_turn).find();
        bound.seconds > largest.seconds)
      largest = bound;
  for (const Carrier& carrier : task.carriers)
    if (carrier.seconds > largest.seconds)
      largest = {.seconds = carrier.seconds,
                 .why = concat(carrier.name, " carries messages so long for each mini-batch")};
  return largest;
}

}  // namespace

double gap_of(double seconds, double bound) {
  if (seconds <= bound) return 0;
  const double gap = seconds / bound - 1;
  return gap <= kSumRounding ? 0 : gap;
}

PaceBound pace_bound(const OrderTask& task) {
  return largest_bound(task, task.staleness == 0);
}

PaceBound pace_bound_of_any(const OrderTask& task) {
  return largest_bound(task, false);
}

}  // namespace pipewright
