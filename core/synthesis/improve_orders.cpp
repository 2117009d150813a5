// SPDX-License-Identifier: Apache-2.0
// A change moves one pass of one worker to another place among its passes. Slower orders are
// accepted, too, less and less often, so that the search leaves what only looks best nearby.
#include "core/synthesis/improve_orders.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/random.h"

namespace pipewright {
namespace {

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

}  // namespace

TimedOrders improved(const OrderTask& task, TimedOrders start,
                     const ImprovementSettings& settings) {
  return Annealing(task, std::move(start), settings).search();
}

}  // namespace pipewright
