// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/placement_search.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

using Placement = std::vector<int>;

constexpr std::size_t kMostPlacements = 20000;  // whose bounds are looked at
constexpr std::int64_t kShare = 1000;           // of the tries, of one placement among many
constexpr int kMostChanges = 400;               // of a placement among too many

/// Equal runs of stages.
Placement run_placement(int stages, int workers) {
  Placement placement;
  for (int stage = 0; stage < stages; ++stage) placement.push_back(stage * workers / stages);
  return placement;
}

/// Adds the placements that begin like `begun`; false if there are more than `most`.
bool complete(Placement& begun, int used, int stages, int workers, std::size_t most,
              std::vector<Placement>& all) {
  const int left = stages - static_cast<int>(begun.size());
  if (left == 0) {
    all.push_back(begun);
    return all.size() <= most;
  }
  for (int worker = 0; worker <= std::min(used, workers - 1); ++worker) {
    const int now = std::max(used, worker + 1);
    if (workers - now > left - 1) continue;  // too few stages for the workers without one
    begun.push_back(worker);
    const bool few = complete(begun, now, stages, workers, most, all);
    begun.pop_back();
    if (!few) return false;
  }
  return true;
}

/// Whether it does not matter which of the workers is which.
bool are_alike(const Hardware& hardware, int workers) {
  const auto same = [&](const Device& a) {
    const Device& b = hardware.devices.front();
    return a.speed == b.speed && a.slowdown == b.slowdown && a.memory == b.memory;
  };
  const auto first = hardware.devices.begin();
  return std::all_of(first, first + workers, same) && hardware.links.empty() &&
         hardware.buses.empty() &&
         (hardware.devices_per_host == 0 || hardware.devices_per_host >= workers);
}

/// The placements with every numbering of their workers; {} if there are more than `most`.
std::vector<Placement> numbered(const std::vector<Placement>& placements, int workers,
                                std::size_t most) {
  std::vector<Placement> all;
  if (placements.empty()) return all;
  std::vector<int> number(as_size(workers));
  std::iota(number.begin(), number.end(), 0);
  do {
    if (all.size() + placements.size() > most) return {};
    for (Placement placement : placements) {
      for (int& worker : placement) worker = number[as_size(worker)];
      all.push_back(std::move(placement));
    }
  } while (std::ranges::next_permutation(number).found);
  return all;
}

class PlacementSearch {
 public:
  PlacementSearch(PipelineShape shape, int workers, std::span<const StageCost> costs,
                  const Hardware& hardware, const ScheduleLimits& limits,
                  const SynthesisSettings& settings, const std::function<bool()>& soon)
      : shape_(std::move(shape)),
        workers_(workers),
        costs_(costs),
        hardware_(hardware),
        limits_(limits),
        settings_(settings),
        quick_(settings) {
    quick_.tries = std::max<std::int64_t>(1, settings.tries / kShare);
    quick_.exact_steps = settings.exact_steps / kShare;
    quick_.stop = soon;
  }

  PlacedSchedule run() {
    for (const auto usual : {round_placement, folded_placement, run_placement})
      try_one(usual(shape_.stages, workers_));
    const std::vector<Placement> all = every_placement();
    placed_.placements = static_cast<std::int64_t>(all.size());
    if (all.empty())
      change_the_best();
    else
      look_at(all);
    if (placed_.placement.empty()) std::rethrow_exception(refusal_);
    search_longer();
    placed_.found.bound = proved_;
    placed_.found.bound.seconds = std::min(proved_.seconds, placed_.found.pace.seconds);
    return std::move(placed_);
  }

 private:
  std::vector<Placement> every_placement() const {
    std::vector<Placement> all = placements_of(shape_.stages, workers_, kMostPlacements);
    return are_alike(hardware_, workers_) ? all : numbered(all, workers_, kMostPlacements);
  }

  SearchedSchedule search(const Placement& placement, const SynthesisSettings& settings) {
    shape_.placement = placement;
    return search_schedule(shape_, costs_, hardware_, limits_, settings);
  }

  PaceBound bound_of(const Placement& placement) {
    shape_.placement = placement;
    return schedule_bound(shape_, costs_, hardware_, limits_);
  }

  /// Takes a bound of one placement into that of all of them.
  void prove(const PaceBound& bound) {
    const bool in_turn = proved_.in_turn || bound.in_turn;
    if (bound.seconds < proved_.seconds) proved_ = bound;
    proved_.in_turn = in_turn;
  }

  /// Keeps what is found if it is the fastest so far. No placement is tried twice.
  void try_one(const Placement& placement) {
    if (!tried_.insert(placement).second) return;
    ++placed_.searched;
    try {
      SearchedSchedule found = search(placement, quick_);
      prove(found.bound);
      if (!placed_.placement.empty() &&
          found.pace.seconds >= placed_.found.pace.seconds * (1 - kSumRounding))
        return;
      placed_.found = std::move(found);
      placed_.placement = placement;
    } catch (const Error& error) {
      const bool stops = error.kind() == ErrorKind::Schedule;  // where messages come in order
      if (!stops && error.kind() != ErrorKind::Experiment) throw;
      if (refusal_ == nullptr) refusal_ = std::current_exception();
      prove(bound_of(placement));  // infinite, unless a schedule may exist that was not found
    }
  }

  bool beats(const PaceBound& bound) const {
    return !placed_.placement.empty() &&
           placed_.found.pace.seconds <= bound.seconds * (1 + kSumRounding);
  }
  bool is_time_up() const { return quick_.stop && quick_.stop(); }

  /// Searches the placements whose bound is below the best pace, the least bound first.
  void look_at(const std::vector<Placement>& all) {
    std::vector<std::pair<PaceBound, const Placement*>> bounds;
    for (const Placement& placement : all)
      if (!tried_.contains(placement)) bounds.emplace_back(bound_of(placement), &placement);
    std::ranges::stable_sort(bounds, {}, [](const auto& each) { return each.first.seconds; });
    for (const auto& [bound, placement] : bounds) {
      if (beats(bound) || is_time_up())
        prove(bound);
      else
        try_one(*placement);
    }
  }

  /// Moves a stage of the best placement to another worker, or swaps two, as long as that helps.
  void change_the_best() {
    proved_ = bound_of_work();
    const RandomStream random(settings_.seed, "placement search");
    std::uint64_t drawn = 0;
    const auto stage = [&] {
      return random.below(drawn++, static_cast<std::uint64_t>(shape_.stages));
    };
    for (int change = 0; change < kMostChanges && !placed_.placement.empty(); ++change) {
      if (beats(proved_) || is_time_up()) break;
      Placement next = placed_.placement;
      const std::size_t one = stage(), other = stage();
      if (random.below(drawn++, 2) == 0)
        std::swap(next[one], next[other]);
      else
        next[one] = next[other];
      if (uses_all(next)) try_one(next);
    }
    proved_ = bound_of_work();
  }

  bool uses_all(const Placement& placement) const {
    std::vector<bool> used(as_size(workers_), false);
    for (const int worker : placement) used[as_size(worker)] = true;
    return std::ranges::count(used, false) == 0;
  }

  /// A bound of any placement: the work of all stages, each on the fastest device, divided among
  /// the workers; of whole backwards, or of halves where these take less.
  PaceBound bound_of_work() const {
    double sum = 0, largest = 0;
    for (int stage = 0; stage < shape_.stages; ++stage) {
      const StageCost& cost = costs_[as_size(stage)];
      const double backward = std::min(cost.backward, cost.backward_input + cost.backward_weight);
      double factor = kUnlimited;
      for (int worker = 0; worker < workers_; ++worker)
        factor = std::min(factor, hardware_.time_factor(worker));
      const double seconds = factor * shape_.microbatches * (cost.forward + backward);
      sum += seconds;
      largest = std::max(largest, seconds);
    }
    return {.seconds = std::max(sum / workers_, largest),
            .why = "the stages' work, shared equally among the workers"};
  }

  /// The best placement with all tries.
  void search_longer() {
    if (beats(proved_)) return;
    SearchedSchedule longer = search(placed_.placement, settings_);
    if (longer.pace.seconds < placed_.found.pace.seconds) placed_.found = std::move(longer);
  }

  PipelineShape shape_;
  int workers_;
  std::span<const StageCost> costs_;
  const Hardware& hardware_;
  const ScheduleLimits& limits_;
  const SynthesisSettings& settings_;
  SynthesisSettings quick_;
  PlacedSchedule placed_;
  PaceBound proved_{.seconds = kUnlimited};  ///< of all placements that were looked at
  std::set<Placement> tried_;
  std::exception_ptr refusal_;  ///< why the first that was refused was
};

}  // namespace

std::vector<int> round_placement(int stages, int workers) {
  Placement placement;
  for (int stage = 0; stage < stages; ++stage) placement.push_back(stage % workers);
  return placement;
}

std::vector<int> folded_placement(int stages, int workers) {
  Placement placement = round_placement(stages, workers);
  for (int stage = 0; stage < stages; ++stage)
    if (int& worker = placement[as_size(stage)]; stage / workers % 2 == 1)
      worker = workers - 1 - worker;
  return placement;
}

std::vector<std::vector<int>> placements_of(int stages, int workers, std::size_t most) {
  std::vector<Placement> all;
  Placement begun;
  if (!complete(begun, 0, stages, workers, most, all)) return {};
  return all;
}

PlacedSchedule search_placements(PipelineShape shape, int workers, std::span<const StageCost> costs,
                                 const Hardware& hardware, const ScheduleLimits& limits,
                                 const SynthesisSettings& settings,
                                 const std::function<bool()>& soon) {
  if (workers > shape.stages)
    throw Error(ErrorKind::Experiment,
                concat("--workers is ", workers, ", and there are ", counted(shape.stages, "stage"),
                       "; expected at most as many workers as stages"));
  return PlacementSearch(std::move(shape), workers, costs, hardware, limits, settings, soon).run();
}

std::string placement_text(const PlacedSchedule& placed) {
  const std::string all = placed.placements == 0
                              ? std::string("too many to look at all")
                              : grouped_text(static_cast<double>(placed.placements));
  return concat("placement ", list_text(placed.placement), ", the best of ", placed.searched,
                " that were searched, of ", all, "\n");
}

}  // namespace pipewright
