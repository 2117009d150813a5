// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/synthesis.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/synthesis/exact_bound.h"
#include "core/synthesis/improve_orders.h"
#include "core/synthesis/list_orders.h"

namespace pipewright {
namespace {

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
