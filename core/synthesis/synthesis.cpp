// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/synthesis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/synthesis/exact_bound.h"
#include "core/synthesis/list_orders.h"
#include "core/synthesis/order_clock.h"

namespace pipewright {
namespace {

struct TimedOrders {
  Orders orders;
  Pace pace;
};

struct ImprovementSettings {
  std::int64_t tries = 20000;  ///< changes that are tried
  std::uint64_t seed = 1;
  double enough = 0;           ///< s per mini-batch at which the search ends
  std::function<bool()> stop;  ///< asked now and then; empty: never
};

/// Simulated annealing: a change moves one pass of one worker to another place among its passes.
/// Slower orders are accepted, too, less and less often, so that the search leaves what only looks
/// best nearby.
class Annealing {
 public:
  Annealing(const OrderTask& task, TimedOrders start, const ImprovementSettings& settings)
      : task_(task),
        settings_(settings),
        clock_(task),
        random_(settings.seed, "order search"),
        best_(std::move(start)),
        now_(best_) {}

  TimedOrders search() {
    constexpr std::int64_t kBetweenQuestions = 64;
    for (std::int64_t i = 0; i < settings_.tries; ++i) {
      if (best_.pace.seconds <= settings_.enough) break;
      if (i % kBetweenQuestions == 0 && settings_.stop && settings_.stop()) break;
      try_change(temperature(i));
    }
    return std::move(best_);
  }

 private:
  /// Falls evenly from a small part of the pace to nothing.
  double temperature(std::int64_t i) const {
    constexpr double kFirst = 0.003;
    const double left = 1 - static_cast<double>(i) / static_cast<double>(settings_.tries);
    return kFirst * left * best_.pace.seconds;
  }

  /// The number that is minimised. The spans show a way where many changes leave the pace as it is.
  static double energy(const Pace& pace) {
    constexpr double kSpans = 2;
    return pace.seconds + kSpans * pace.mean_span;
  }

  std::size_t below(std::size_t end) { return random_.below(drawn_++, end); }

  void try_change(double temperature) {
    const std::size_t worker = below(now_.orders.size());
    std::vector<Turn>& turns = now_.orders[worker];
    if (turns.size() < 2) return;
    const std::size_t from = below(turns.size());
    const std::size_t to = target(from, turns.size());
    if (turns[from] == turns[to]) return;
    move(turns, from, to);
    if (fits(task_, static_cast<int>(worker), turns)) {
      const Pace pace = clock_.pace(now_.orders);
      const double worse = energy(pace) - energy(now_.pace);
      if (worse <= 0 || random_.uniform(drawn_++) < std::exp(-worse / temperature)) {
        now_.pace = pace;
        if (faster(pace, best_.pace)) best_ = now_;
        return;
      }
    }
    move(turns, to, from);
  }

  /// Another place, mostly a near one.
  std::size_t target(std::size_t from, std::size_t size) {
    std::size_t reach = 1;
    while (reach < size && below(2) == 0) reach *= 2;
    const std::size_t step = 1 + below(reach);
    if (below(2) == 0) return from > step ? from - step : 0;
    return std::min(from + step, size - 1);
  }

  static void move(std::vector<Turn>& turns, std::size_t from, std::size_t to) {
    const auto at = [&](std::size_t i) { return turns.begin() + static_cast<std::ptrdiff_t>(i); };
    if (from < to)
      std::rotate(at(from), at(from + 1), at(to + 1));
    else
      std::rotate(at(to), at(from), at(from + 1));
  }

  const OrderTask& task_;
  const ImprovementSettings& settings_;
  OrderClock clock_;
  RandomStream random_;
  std::uint64_t drawn_ = 0;
  TimedOrders best_, now_;
};

/// The fastest orders found from `start`, which must fit the task: at least as fast. Equal
/// arguments give equal results, unless it is stopped.
TimedOrders improved(const OrderTask& task, TimedOrders start,
                     const ImprovementSettings& settings) {
  return Annealing(task, std::move(start), settings).search();
}

struct Start {
  TimedOrders timed;
  std::string name;
};

class Search {
 public:
  Search(const OrderTask& task, const SynthesisSettings& settings)
      : task_(task), settings_(settings), clock_(task), bound_(pace_bound(task)) {}

  Synthesis run(const std::vector<NamedOrders>& candidates) {
    for (const NamedOrders& candidate : candidates)
      if (fits(task_, candidate.orders)) add(candidate.orders, candidate.name);
    list();
    PIPEWRIGHT_CHECK(!starts_.empty(), "a task with room for a micro-batch has some order");
    std::ranges::stable_sort(
        starts_, [](const Start& a, const Start& b) { return faster(a.timed.pace, b.timed.pace); });
    improve();
    Start& best = starts_.front();
    return {.orders = std::move(best.timed.orders),
            .pace = best.timed.pace,
            .from = std::move(best.name),
            .bound = std::move(bound_)};
  }

 private:
  bool stopped() const { return settings_.stop && settings_.stop(); }
  double enough() const { return bound_.seconds * (1 + kSumRounding); }

  void add(Orders orders, const std::string& name) {
    const Pace pace = clock_.pace(orders);
    if (std::isfinite(pace.seconds)) starts_.push_back({{std::move(orders), pace}, name});
    met_ = met_ || pace.seconds <= enough();
  }

  /// Tries the rules, the first of them in any case.
  void list() {
    for (const ListRule& rule : list_rules(task_, settings_.tries)) {
      if (met_ || (!starts_.empty() && stopped())) return;
      if (auto orders = list_orders(task_, rule)) add(*std::move(orders), "list");
    }
  }

  /// Changes the fastest starts in turn, and the best of all again and again.
  void improve() {
    constexpr std::int64_t kEach = 100000;
    constexpr std::size_t kStarts = 4;
    starts_.resize(std::min(starts_.size(), kStarts));
    const std::vector<Start> first = starts_;
    std::uint64_t round = 0;
    for (std::int64_t tries = 0; tries < settings_.tries && !ended(); tries += kEach, ++round) {
      if (round == first.size()) look_at_all();
      const bool again = round >= first.size() && round % 2 == 0;
      Start start = again ? starts_.front() : first[round % first.size()];
      start.timed = improved(task_, std::move(start.timed),
                             {.tries = std::min(kEach, settings_.tries - tries),
                              .seed = settings_.seed + round,
                              .enough = enough(),
                              .stop = settings_.stop});
      if (faster(start.timed.pace, starts_.front().timed.pace)) starts_.front() = std::move(start);
    }
    if (round < first.size() && !ended()) look_at_all();
  }

  bool ended() const { return starts_.front().timed.pace.seconds <= enough() || stopped(); }

  /// Raises the bound if the task is so small that all orders can be looked at.
  void look_at_all() {
    const PaceBound bound = exact_bound(task_, {.below = starts_.front().timed.pace.seconds,
                                                .most_steps = settings_.exact_steps,
                                                .stop = settings_.stop});
    if (bound.seconds > bound_.seconds) bound_ = bound;
  }

  const OrderTask& task_;
  const SynthesisSettings& settings_;
  OrderClock clock_;
  PaceBound bound_;
  std::vector<Start> starts_;
  bool met_ = false;  ///< whether a start is as fast as the bound
};

}  // namespace

double Synthesis::gap() const {
  return gap_of(pace.seconds, bound.seconds);
}

Synthesis synthesize(const OrderTask& task, const std::vector<NamedOrders>& candidates,
                     const SynthesisSettings& settings) {
  return Search(task, settings).run(candidates);
}

}  // namespace pipewright
