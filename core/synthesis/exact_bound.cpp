// SPDX-License-Identifier: Apache-2.0
// Beginnings of orders grow by a pass at a time, in the order in which passes begin. Of two that
// have done the same passes only the earlier one goes on, and none does that leaves too little time
// for the rest. No pass waits where another one of its worker would fit before it: doing that first
// takes nothing from what comes later, for it has to be done anyway, and room that suffices for it
// early does so until then.
#include "core/synthesis/exact_bound.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

/// The passes that have been performed, [stage · 3 + part].
using Done = std::vector<std::uint8_t>;
/// When the beginning can go on: the last beginning of a pass, when each worker is free, and when
/// inputs that are made and not yet used arrive; the same entries for equal Done.
using Times = std::vector<double>;

class FirstWorker {
 public:
  /// `first`: the stage whose worker is asked.
  FirstWorker(const OrderTask& task, int first, const ExactSettings& settings, std::int64_t& steps)
      : task_(task),
        first_(first),
        stages_(task.stages() - first),
        settings_(settings),
        steps_(steps) {}

  /// nullopt if it is given up.
  std::optional<double> find() {
    std::map<Done, std::vector<Times>> now{
        {Done(as_size(stages_) * kParts, 0), {Times(as_size(stages_) + 1, 0.0)}}};
    const int all = stages_ * task_.microbatches * (task_.split ? 3 : 2);
    double best = settings_.below;
    for (int i = 0; i < all && !now.empty(); ++i) {
      next_.clear();
      for (const auto& [done, fronts] : now)
        for (const Times& times : fronts) {
          if (is_over(done)) {
            best = std::min(best, times[1]);
            continue;
          }
          if (!go_on(done, times, best)) return std::nullopt;
        }
      now.swap(next_);
    }
    for (const auto& [done, fronts] : now)
      for (const Times& times : fronts) best = std::min(best, times[1]);
    return best;
  }

 private:
  struct Pass {
    int stage;
    Part part;
    double begin, end;
  };

  double seconds(int stage, Part part) const { return task_.seconds_of({first_ + stage, part}); }
  static std::size_t at(int stage, Part part) {
    return as_size(stage) * kParts + static_cast<std::size_t>(part);
  }
  int count(const Done& done, int stage, Part part) const { return done[at(stage, part)]; }
  bool is_over(const Done& done) const {
    return count(done, 0, task_.last_part()) == task_.microbatches;
  }

  /// Where in Times the inputs that wait for a stage's part begin.
  std::size_t inputs_of(const Done& done, int stage, Part part) const {
    std::size_t begin = as_size(stages_) + 1;
    for (int other = 1; other < stages_; ++other) {
      if (other == stage && part == Part::Forward) return begin;
      begin += as_size(count(done, other - 1, Part::Forward) - count(done, other, Part::Forward));
    }
    for (int other = 0; other + 1 < stages_; ++other) {
      if (other == stage && part == Part::Backward) return begin;
      begin += as_size(count(done, other + 1, Part::Backward) - count(done, other, Part::Backward));
    }
    return begin;
  }

  /// When that pass could begin; nullopt if its input is not made or there is no room.
  std::optional<double> begin_of(const Done& done, const Times& times, int stage, Part part) const {
    const int number = count(done, stage, part);
    if (number == task_.microbatches || (part == Part::Weight && !task_.split)) return std::nullopt;
    const double free = times[1 + as_size(stage)];
    if (part == Part::Weight)
      return count(done, stage, Part::Backward) > number ? std::optional(free) : std::nullopt;
    if (part == Part::Forward) {
      const int live = number - count(done, stage, task_.last_part()) + 1;
      const auto worker = as_size(task_.worker_of[as_size(first_ + stage)]);
      if (live * task_.held[as_size(first_ + stage)] > task_.room[worker] * (1 + kSumRounding))
        return std::nullopt;
      if (stage == 0) return free;
      if (count(done, stage - 1, part) <= number) return std::nullopt;
    } else {
      if (count(done, stage, Part::Forward) <= number) return std::nullopt;
      if (stage + 1 == stages_) return free;
      if (count(done, stage + 1, part) <= number) return std::nullopt;
    }
    return std::max(free, times[inputs_of(done, stage, part)]);
  }

  /// Appends every pass that may come next. False if there have been too many steps.
  bool go_on(const Done& done, const Times& times, double best) {
    for (int stage = 0; stage < stages_; ++stage) {
      passes_.clear();
      for (const Part part : {Part::Forward, Part::Backward, Part::Weight})
        if (const auto begin = begin_of(done, times, stage, part))
          passes_.push_back({stage, part, *begin, *begin + seconds(stage, part)});
      for (const Pass& pass : passes_) {
        const bool another_fits = std::ranges::any_of(passes_, [&](const Pass& other) {
          return other.end <= pass.begin && other.begin < pass.begin;
        });
        if (another_fits) continue;
        if (++steps_ > settings_.most_steps || stopped()) return false;
        append(done, times, pass, best);
      }
    }
    return true;
  }

  bool stopped() const {
    constexpr std::int64_t kBetweenQuestions = 1024;
    return steps_ % kBetweenQuestions == 0 && settings_.stop && settings_.stop();
  }

  void append(const Done& done, const Times& times, const Pass& pass, double best) {
    Done more = done;
    Times after = times;
    after.front() = pass.begin;
    if (pass.part != Part::Weight) {
      if (has_input(pass))
        after.erase(after.begin() + place(inputs_of(done, pass.stage, pass.part)));
      ++more[at(pass.stage, pass.part)];
      make_output(more, after, pass);
    } else {
      ++more[at(pass.stage, pass.part)];
    }
    const bool updates =
        pass.part == task_.last_part() && count(more, pass.stage, pass.part) == task_.microbatches;
    after[1 + as_size(pass.stage)] =
        pass.end + (updates ? task_.update[as_size(first_ + pass.stage)] : 0);
    level(more, after, pass.stage);
    if (least_end(more, after) >= best * (1 - kSumRounding)) return;
    keep(next_[more], std::move(after));
  }

  static std::ptrdiff_t place(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }
  bool has_input(const Pass& pass) const {
    return pass.part == Part::Forward ? pass.stage > 0 : pass.stage + 1 < stages_;
  }

  /// Inserts the arrival behind those that wait already. `more` counts the pass, so that there is
  /// one input more than Times has.
  void make_output(const Done& more, Times& after, const Pass& pass) const {
    const bool forward = pass.part == Part::Forward;
    const int to = forward ? pass.stage + 1 : pass.stage - 1;
    if (to < 0 || to == stages_) return;
    const double delay = forward ? task_.forward_delay[as_size(first_ + pass.stage)]
                                 : task_.backward_delay[as_size(first_ + pass.stage)];
    const int waiting = count(more, pass.stage, pass.part) - count(more, to, pass.part) - 1;
    const std::size_t index = inputs_of(more, to, pass.part) + as_size(waiting);
    after.insert(after.begin() + place(index), pass.end + delay);
  }

  /// Times before those at which anything can begin are all the same.
  void level(const Done& done, Times& times, int stage) const {
    for (double& time : times) time = std::max(time, times.front());
    for (const Part part : {Part::Forward, Part::Backward}) {
      const int from = part == Part::Forward ? stage - 1 : stage + 1;
      if (from < 0 || from == stages_) continue;
      const std::size_t begin = inputs_of(done, stage, part);
      const int waiting = count(done, from, part) - count(done, stage, part);
      for (std::size_t i = begin; i < begin + as_size(waiting); ++i)
        times[i] = std::max(times[i], times[1 + as_size(stage)]);
    }
  }

  /// No earlier end of the first worker can follow.
  double least_end(const Done& done, const Times& times) const {
    const double free = times[1];
    double work = 0;
    for (const Part part : {Part::Forward, Part::Backward, Part::Weight})
      if (part != Part::Weight || task_.split)
        work += (task_.microbatches - count(done, 0, part)) * seconds(0, part);
    double end = free + work;
    const int forwards = task_.microbatches - count(done, 0, Part::Forward);
    const int worker = task_.worker_of[as_size(first_)];
    const double room = task_.room[as_size(worker)] / task_.held[as_size(first_)] + kSumRounding;
    const int at_once = room < task_.microbatches ? static_cast<int>(room) : task_.microbatches;
    if (forwards > 0) {
      const int rounds = (forwards - 1) / at_once + 1;
      end = std::max(end, free + rounds * round());
    }
    return std::max(end, returned(done, times));
  }

  /// From the beginning of a micro-batch's forward at the first worker to the end of its last pass.
  double round() const {
    double sum = seconds(0, Part::Weight);
    for (int stage = 0; stage < stages_; ++stage) {
      sum += seconds(stage, Part::Forward) + seconds(stage, Part::Backward);
      if (stage > 0)
        sum += task_.forward_delay[as_size(first_ + stage - 1)] +
               task_.backward_delay[as_size(first_ + stage)];
    }
    return sum;
  }

  /// When the micro-batch can have ended that began last, from where it is.
  double returned(const Done& done, const Times& times) const {
    const int last = count(done, 0, Part::Forward) - 1;
    if (last < 0 || count(done, 0, Part::Backward) > last) return 0;
    double end = 0;
    int stage = 0;
    while (stage < stages_ && count(done, stage, Part::Forward) > last) ++stage;
    // Forwards of stages up to `stage` − 1 are done; then the rest of them, and the way back.
    if (stage < stages_) end = times[1 + as_size(stage)];
    for (int other = stage; other < stages_; ++other) end += seconds(other, Part::Forward);
    for (int other = stages_ - 1; other >= 0; --other)
      if (count(done, other, Part::Backward) <= last)
        end = std::max(end, times[1 + as_size(other)]) + seconds(other, Part::Backward);
    return end + seconds(0, Part::Weight);
  }

  /// Adds to the times of equal Done, unless others are as early; drops those that are no earlier.
  static void keep(std::vector<Times>& front, Times times) {
    const auto no_later = [](const Times& a, const Times& b) {
      return std::ranges::equal(a, b, [](double x, double y) { return x <= y; });
    };
    for (const Times& other : front)
      if (no_later(other, times)) return;
    std::erase_if(front, [&](const Times& other) { return no_later(times, other); });
    front.push_back(std::move(times));
  }

  const OrderTask& task_;
  int first_, stages_;
  const ExactSettings& settings_;
  std::int64_t& steps_;
  std::map<Done, std::vector<Times>> next_;
  std::vector<Pass> passes_;
};

}  // namespace

PaceBound exact_bound(const OrderTask& task, const ExactSettings& settings) {
  constexpr int kMostMicrobatches = 255;  // that Done counts
  PaceBound largest;
  if (task.workers != task.stages() || task.minibatches > 1 || task.staleness > 0 ||
      task.microbatches > kMostMicrobatches)
    return largest;
  for (int stage = 0; stage < task.stages(); ++stage)
    if (task.worker_of[as_size(stage)] != stage) return largest;
  std::int64_t steps = 0;
  for (int first = 0; first < task.stages(); ++first) {
    const auto least = FirstWorker(task, first, settings, steps).find();
    if (!least) return largest;
    if (*least > largest.seconds)
      largest = {.seconds = *least,
                 .why = concat("no order gives worker ", first,
                               " less time for a mini-batch, as a search of all orders showed")};
    if (largest.seconds >= settings.below * (1 - kSumRounding)) return largest;
  }
  return largest;
}

}  // namespace pipewright
