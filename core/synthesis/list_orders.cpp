// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/list_orders.h"

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/base/random.h"

namespace pipewright {
namespace {

/// A pass that a worker could do next, and when.
struct Offer {
  Turn turn;
  double begin = 0;
  int rank = 0;
};

class ListedOrders {
 public:
  ListedOrders(const OrderTask& task, const ListRule& rule)
      : task_(task),
        rule_(rule),
        stages_of_(as_size(task.workers)),
        ends_(as_size(task.stages())),
        free_(as_size(task.workers), 0),
        live_(as_size(task.workers), 0),
        promised_(as_size(task.workers), 0),
        orders_(as_size(task.workers)) {
    for (int stage = 0; stage < task.stages(); ++stage)
      stages_of_[as_size(task.worker_of[as_size(stage)])].push_back(stage);
  }

  std::optional<Orders> make() {
    const int all = task_.stages() * task_.passes() * (task_.split ? 3 : 2);
    for (int i = 0; i < all; ++i) {
      std::optional<Offer> earliest;
      for (int worker = 0; worker < task_.workers; ++worker)
        if (const auto offer = choice_of(worker);
            offer && (!earliest || offer->begin < earliest->begin))
          earliest = offer;
      if (!earliest) return std::nullopt;
      perform(*earliest);
    }
    return std::move(orders_);
  }

 private:
  std::vector<double>& ends(int stage, Part part) {
    return ends_[as_size(stage)][static_cast<std::size_t>(part)];
  }
  std::size_t done(int stage, Part part) { return ends(stage, part).size(); }

  int rank(Part part) const {
    constexpr std::array<std::array<int, kParts>, 3> kRanks{{{1, 0, 2}, {2, 0, 1}, {0, 1, 2}}};
    return kRanks[static_cast<std::size_t>(rule_.first)][static_cast<std::size_t>(part)];
  }

  /// Of the passes that begin soon enough after the first that could, the one of the highest rank.
  std::optional<Offer> choice_of(int worker) {
    offers_.clear();
    for (const int stage : stages_of_[as_size(worker)])
      for (const Part part : {Part::Backward, Part::Forward, Part::Weight}) offer(stage, part);
    if (offers_.empty()) return std::nullopt;
    const Offer& soonest = *std::ranges::min_element(offers_, {}, &Offer::begin);
    const double until = soonest.begin + rule_.patience * task_.seconds_of(soonest.turn);
    const Offer* best = &soonest;
    for (const Offer& each : offers_)
      if (each.begin <= until && each.rank < best->rank) best = &each;
    return *best;
  }

  void offer(int stage, Part part) {
    const std::size_t count = done(stage, part);
    if (count == as_size(task_.passes()) || (part == Part::Weight && !task_.split)) return;
    if (part != Part::Forward && done(stage, before(part)) <= count) return;
    const int worker = task_.worker_of[as_size(stage)];
    if (part == Part::Forward && !(has_room(stage, worker) && is_fresh(stage))) return;
    double begin = free_[as_size(worker)];
    if (part == Part::Forward && stage == 0 && count > 0)
      begin = std::max(begin, ends(0, part).back() - task_.seconds_of({0, part}) + rule_.spacing);
    const int from = part == Part::Forward ? stage - 1 : stage + 1;
    if (part != Part::Weight && from >= 0 && from < task_.stages()) {
      if (done(from, part) <= count) return;
      const double delay = part == Part::Forward ? task_.forward_delay[as_size(from)]
                                                 : task_.backward_delay[as_size(from)];
      begin = std::max(begin, ends(from, part)[count] + delay);
    }
    // Among passes of the same kind those of later stages are nearer to their end.
    const int late = part == Part::Weight ? 0 : task_.stages() - stage;
    offers_.push_back({{stage, part}, begin, rank(part) * (task_.stages() + 1) + late});
  }

  /// Whether the next forward comes behind the update that it has to wait for.
  bool is_fresh(int stage) {
    const std::size_t minibatch = done(stage, Part::Forward) / as_size(task_.microbatches);
    const std::size_t updates = done(stage, task_.last_part()) / as_size(task_.microbatches);
    return minibatch <= updates + as_size(task_.staleness);
  }

  static Part before(Part part) { return part == Part::Weight ? Part::Backward : Part::Forward; }

  /// A micro-batch that comes to a worker is promised room at all of its stages, so that it can
  /// leave again.
  bool has_room(int stage, int worker) const {
    if (stage != stages_of_[as_size(worker)].front()) return true;
    const double after = promised_[as_size(worker)] + held(worker);
    const double most = std::max(
        1.0, rule_.live + rule_.live_per_worker * static_cast<double>(task_.workers - 1 - worker));
    return after <= task_.room[as_size(worker)] * (1 + kSumRounding) &&
           live_[as_size(worker)] + 1 <= most;
  }
  double held(int worker) const {
    double sum = 0;
    for (const int stage : stages_of_[as_size(worker)]) sum += task_.held[as_size(stage)];
    return sum;
  }

  void perform(const Offer& offer) {
    const auto [stage, part] = offer.turn;
    const int worker = task_.worker_of[as_size(stage)];
    const double end = offer.begin + task_.seconds_of(offer.turn);
    ends(stage, part).push_back(end);
    const bool updates =
        part == task_.last_part() && done(stage, part) % as_size(task_.microbatches) == 0;
    free_[as_size(worker)] = end + (updates ? task_.update[as_size(stage)] : 0);
    orders_[as_size(worker)].push_back(offer.turn);
    const bool first = stage == stages_of_[as_size(worker)].front();
    if (part == Part::Forward && first) {
      promised_[as_size(worker)] += held(worker);
      ++live_[as_size(worker)];
    }
    if (part == task_.last_part()) {
      promised_[as_size(worker)] -= task_.held[as_size(stage)];
      if (first) --live_[as_size(worker)];
    }
  }

  const OrderTask& task_;
  const ListRule& rule_;
  std::vector<std::vector<int>> stages_of_;                    ///< [worker], ascending
  std::vector<std::array<std::vector<double>, kParts>> ends_;  ///< [stage][part][micro-batch]
  std::vector<double> free_;
  std::vector<int> live_;
  std::vector<double> promised_;  ///< room that micro-batches have or will have
  std::vector<Offer> offers_;
  Orders orders_;
};

/// The most micro-batches that may be between their forward and their update at the first stage.
double most_at_once(const OrderTask& task) {
  const double room = task.room[as_size(task.worker_of.front())] / task.held.front();
  const double begun = task.microbatches * (task.staleness + 1.0);
  return task.staleness > 0 ? std::min(room, begun) : room;
}

/// The spacings of forwards that may help where few micro-batches may be at the first stage: what a
/// micro-batch takes on the busiest worker, and the time of its way and its update, divided by how
/// many may be there.
std::vector<double> spacings(const OrderTask& task) {
  std::vector<double> work(as_size(task.workers), 0);
  double way = 0;
  for (int stage = 0; stage < task.stages(); ++stage) {
    const auto& [forward, backward, weight] = task.seconds[as_size(stage)];
    work[as_size(task.worker_of[as_size(stage)])] += forward + backward + weight;
    way += forward + backward + task.forward_delay[as_size(stage)] +
           task.backward_delay[as_size(stage)];
  }
  way += task.seconds_of({0, Part::Weight}) + task.update.front();
  const double at_once = most_at_once(task);
  std::vector<double> all{0, std::ranges::max(work), 2 * task.seconds_of({0, Part::Forward})};
  if (std::isfinite(at_once))
    for (const double more : {0.0, 0.5, 1.0, 2.0})
      all.push_back(way / at_once + more * task.seconds_of({0, Part::Forward}));
  return all;
}

}  // namespace

std::optional<Orders> list_orders(const OrderTask& task, const ListRule& rule) {
  return ListedOrders(task, rule).make();
}

namespace {

/// Rules whose numbers are drawn between those that make sense: the fewer, the longer orders are.
void add_drawn_rules(const OrderTask& task, std::vector<ListRule>& rules) {
  constexpr double kMost = 2000, kPasses = 2e6;
  const int count = static_cast<int>(
      std::min(kMost, kPasses / (static_cast<double>(task.stages()) * task.passes())));
  const RandomStream random(1, "list rules");
  const double spacing = std::ranges::max(spacings(task));
  const double room = std::min(most_at_once(task), 2.0 * task.workers);
  std::uint64_t drawn = 0;
  for (int i = 0; i < count; ++i)
    rules.push_back({.first = static_cast<ListRule::First>(random.below(drawn++, 3)),
                     .patience = 1.5 * random.uniform(drawn++),
                     .live = 1 + room * random.uniform(drawn++),
                     .live_per_worker = 2 * random.uniform(drawn++),
                     .spacing = spacing * random.uniform(drawn++)});
}

}  // namespace

std::vector<ListRule> list_rules(const OrderTask& task, std::int64_t tries) {
  struct Limit {
    double live, per_worker;
  };
  const std::vector<Limit> limits{{kUnlimited, 0}, {1, 1}, {1, 2}, {1, 1.5}, {2, 1}};
  std::vector<ListRule> rules;
  for (const auto first : {ListRule::First::BackwardForward, ListRule::First::BackwardWeight,
                           ListRule::First::ForwardBackward})
    for (const double patience : {0.0, 0.5, 1.0})
      for (const Limit& limit : limits)
        for (const double spacing : spacings(task))
          rules.push_back({first, patience, limit.live, limit.per_worker, spacing});
  add_drawn_rules(task, rules);
  constexpr std::int64_t kTriesOfOne = 50, kLeast = 16;
  const auto most = static_cast<std::size_t>(std::max(kLeast, tries / kTriesOfOne));
  rules.resize(std::min(rules.size(), most));
  return rules;
}

}  // namespace pipewright
