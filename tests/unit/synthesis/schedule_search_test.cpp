// SPDX-License-Identifier: Apache-2.0
// Schedules that the search returns: proved, within the limits, at the pace that is promised, and
// no slower than any built-in scheme.
#include "core/synthesis/schedule_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/drawing/render.h"
#include "core/schedule/action_list.h"
#include "core/schedule/prove.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/synthesis/search_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

constexpr int kMinibatches = 24;

/// The most micro-batches whose forward has begun and whose last pass has not ended, counted with a
/// set.
std::size_t held_by(const std::vector<Action>& actions) {
  using Key = std::array<int, 3>;
  std::map<Key, int> passes;
  const auto key = [](const Action& action) {
    return Key{action.stage, action.minibatch, action.microbatch};
  };
  for (const Action& action : actions)
    if (is_pass(action.kind)) ++passes[key(action)];
  std::set<Key> live;
  std::size_t most = 0;
  for (const Action& action : actions) {
    if (!is_pass(action.kind)) continue;
    live.insert(key(action));
    most = std::max(most, live.size());
    if (--passes[key(action)] == 0) live.erase(key(action));
  }
  return most;
}

std::size_t held_by(const Schedule& schedule) {
  std::size_t most = 0;
  for (const auto& actions : schedule.workers) most = std::max(most, held_by(actions));
  return most;
}

/// Updates between a forward and the update of its mini-batch, of each forward, counted by walking.
int oldest_weights(const Schedule& schedule) {
  int most = 0;
  for (const auto& actions : schedule.workers) {
    std::map<int, int> updates;
    for (const Action& action : actions) {
      if (action.kind == ActionKind::Update) ++updates[action.stage];
      if (action.kind == ActionKind::Forward)
        most = std::max(most, action.minibatch - updates[action.stage]);
    }
  }
  return most;
}

/// Fewer changes than by default, so that tests take little time.
const SynthesisSettings kShort{.tries = 20000, .exact_steps = 20000};

/// A pipeline whose stages cost and send unlike amounts, and how much a schedule may use of it.
struct RandomTask {
  PipelineShape shape;
  std::vector<StageCost> costs;
  Hardware hardware;
  ScheduleLimits limits;
};

enum class Lie { Straight, V, Loop };

RandomTask random_task(std::uint64_t seed, Lie lie, int staleness) {
  const RandomStream random(seed, "task");
  const int workers = 2 + static_cast<int>(random.below(0, lie == Lie::Straight ? 4 : 3));
  const int chunks = lie == Lie::Straight ? 1 : 2, stages = chunks * workers;
  RandomTask task{
      .shape = straight(stages, 1 + static_cast<int>(random.below(1, staleness > 0 ? 3 : 9)),
                        kMinibatches),
      .costs = random_costs(stages, seed),
      .hardware = ideal_hardware(workers),
      .limits = {.staleness = staleness}};
  for (int stage = 0; lie != Lie::Straight && stage < stages; ++stage)
    task.shape.placement.push_back(stage < workers ? stage
                                   : lie == Lie::V ? stages - 1 - stage
                                                   : stage - workers);
  for (std::size_t stage = 0; stage < task.costs.size(); ++stage) {
    StageCost& cost = task.costs[stage];
    cost.parameter_bytes = 50 + static_cast<std::int64_t>(random.below(100 + stage, 100));
    cost.activation_bytes = 10 + static_cast<std::int64_t>(random.below(200 + stage, 20));
    cost.output_bytes = 5 + static_cast<std::int64_t>(random.below(300 + stage, 10));
    if (stage > 0) cost.input_bytes = task.costs[stage - 1].output_bytes;
    cost.peak_bytes = static_cast<std::int64_t>(random.below(400 + stage, 10));
  }
  if (random.below(2, 2) == 1)  // messages take up to a second
    task.hardware.within = {.latency = 0.25 * random.uniform(3), .bandwidth = 20};
  if (random.below(4, 2) == 1)
    task.limits.live = static_cast<double>(chunks + static_cast<int>(random.below(5, 8)));
  else  // weights, gradients and some micro-batches
    task.limits.memory.assign(as_size(workers),
                              chunks * (250 + 40 * static_cast<int>(random.below(6, 8))));
  return task;
}

/// What every worker holds besides is room that no schedule has.
TEST(ScheduleSearch, CountsWhatEveryWorkerHoldsBesides) {
  RandomTask task = random_task(3, Lie::V, 0);
  task.limits.live = kUnlimited;
  task.limits.memory.assign(as_size(task.shape.workers()), 1100);
  const auto found = [&] {
    return search_schedule(task.shape, task.costs, task.hardware, task.limits, kShort);
  };
  const SearchedSchedule plain = found();
  constexpr std::int64_t kFixed = 2000;
  task.limits.fixed = kFixed;
  EXPECT_THROW(found(), Error) << "it alone is more than there is";
  for (std::int64_t& memory : task.limits.memory) memory += kFixed;
  const SearchedSchedule besides = found();
  EXPECT_EQ(besides.pace.seconds, plain.pace.seconds);
  for (int worker = 0; worker < task.shape.workers(); ++worker)
    EXPECT_EQ(besides.simulation.workers[as_size(worker)].peak.total(),
              plain.simulation.workers[as_size(worker)].peak.total() + kFixed);
}

/// The schemes that can run in the shape, with default options and with as many chunks as it has,
/// each as it is simulated without the search; without those that do other mathematics than plain
/// forwards and backwards of one loss.
std::vector<std::pair<std::string, Schedule>> schemes_in(const PipelineShape& shape) {
  std::vector<std::pair<std::string, Schedule>> all;
  for (const std::string& name : Registry<Scheme>::instance().names()) {
    if (name == "csv_schedule") continue;
    const bool chunks = std::ranges::any_of(
        declared_options(name), [](const OptionInfo& info) { return info.name == "chunks"; });
    const int each = shape.stages / shape.workers();
    try {
      Schedule schedule = schedule_of(name, chunks ? concat("{chunks: ", each, "}") : "{}", shape);
      prove(schedule);
      bool plain = true;
      for (const auto& actions : schedule.workers)
        for (const Action& action : actions)
          plain = plain && action.weights.ahead == 0 && action.kind != ActionKind::Head &&
                  action.kind != ActionKind::Recompute &&
                  (!is_backward(action.kind) || action.loss == shape.stages - 1);
      for (int stage = 0; stage < shape.stages; ++stage)
        plain = plain && schedule.shape.worker_of(stage, 0) == shape.worker_of(stage, 0);
      if (plain) all.emplace_back(name, std::move(schedule));
    } catch (const Error&) {  // not in this shape
    }
  }
  return all;
}

/// How long a mini-batch takes in the middle half of the schedule; nothing where it does not keep
/// to the limits.
std::optional<double> seconds_within(const RandomTask& task, const Schedule& schedule) {
  if (static_cast<double>(held_by(schedule)) > task.limits.live ||
      oldest_weights(schedule) > task.limits.staleness)
    return {};
  const Simulation simulation = simulate(prove(schedule), task.costs, task.hardware);
  for (std::size_t w = 0; w < task.limits.memory.size(); ++w)
    if (simulation.workers[w].peak.total() > task.limits.memory[w]) return {};
  return simulation.seconds_per_minibatch();
}

/// Where mini-batches overlap they end in bunches, of which the middle half of a simulation may
/// have one too many; the pace that the search tells is then the longer of both.
/// Returns how often it was compared with each scheme, and under "" how often it was refused.
std::map<std::string, int> expect_no_slower_than_any_scheme(std::uint64_t tables) {
  const SynthesisSettings few{.tries = 2000, .exact_steps = 2000};
  std::map<std::string, int> compared;
  const auto compare = [&](std::uint64_t seed, Lie lie, int staleness) {
    const RandomTask task = random_task(seed, lie, staleness);
    const auto others = schemes_in(task.shape);
    const std::string which =
        concat("seed ", seed, ", placement ", static_cast<int>(lie), ", staleness ", staleness);
    SearchedSchedule found;
    try {
      found = search_schedule(task.shape, task.costs, task.hardware, task.limits, few);
    } catch (const Error& error) {  // no room
      EXPECT_EQ(error.kind(), ErrorKind::Experiment) << error.what();
      for (const auto& [name, other] : others)
        EXPECT_FALSE(seconds_within(task, other)) << which << ": there is room for " << name;
      ++compared[""];
      return;
    }
    const auto seconds = seconds_within(task, found.proved->schedule);
    ASSERT_TRUE(seconds) << which << ": does not keep to the limits";
    const double rounding = *seconds * tolerance::rounded64(10000);  // sums of fewer passes
    EXPECT_GE(found.pace.seconds, found.bound.seconds - rounding) << which;
    if (staleness == 0) {
      EXPECT_TRUE(found.pace.repeats) << which;
      EXPECT_NEAR(*seconds, found.pace.seconds, rounding) << which;
    }
    for (const auto& [name, other] : others)
      if (const auto its = seconds_within(task, other)) {
        EXPECT_LE(*seconds, *its + rounding) << which << ": " << name;
        ++compared[name];
      }
  };
  constexpr std::array kLies{Lie::Straight, Lie::V, Lie::Loop};
  for (std::uint64_t seed = 0; seed < tables; ++seed) {
    for (const Lie lie : kLies) compare(seed, lie, 0);
    compare(seed, kLies[seed % 3], 1 + static_cast<int>(seed % 4));
  }
  return compared;
}

TEST(ScheduleSearch, IsNoSlowerThanAnySchemeWithinTheSameLimitsOnTenRandomTables) {
  EXPECT_GT(expect_no_slower_than_any_scheme(10).size(), 10U);
}

TEST(ScheduleSearch, IsNoSlowerThanAnySchemeWithinTheSameLimitsOnFiftyRandomTables) {
  auto compared = expect_no_slower_than_any_scheme(50);
  EXPECT_GT(compared[""], 0);
  for (const char* name :
       {"gpipe", "model_parallel", "one_f_one_b", "zb_h1", "zb_h2", "zb_v", "v_half", "v_min",
        "hanayo", "dualpipe_v", "interleaved", "pipedream", "pipedream_2bw", "paci"})
    EXPECT_GT(compared[name], 0) << name;
}

/// It is asked now and then whether time is up: after so many changes of orders, not so many
/// seconds. When it is, the search ends at once with what it has, which is near the bound already.
TEST(ScheduleSearch, EndsWhenItIsToldWithAnOrderOfEightWorkersAnd32MicroBatches) {
  const PipelineShape shape = straight(8, 32, kMinibatches);
  const Hardware hardware = ideal_hardware(8);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<StageCost> costs = random_costs(8, seed);
    constexpr int kAnswers = 100;
    int asked = 0;
    SynthesisSettings settings;
    settings.stop = [&] { return ++asked > kAnswers; };
    const SearchedSchedule found = search_schedule(shape, costs, hardware, {.live = 8}, settings);
    EXPECT_GT(asked, kAnswers) << seed << ": ended by itself";
    EXPECT_LE(asked, kAnswers + 10) << seed;
    EXPECT_LE(held_by(found.proved->schedule), 8U) << seed;
    EXPECT_TRUE(found.pace.repeats) << seed;
    EXPECT_LE(found.gap(), 0.12) << seed;
    EXPECT_LE(found.pace.seconds, found.built_in_seconds) << seed;
  }
}

/// What a CSV file of the schedule says, as csv_schedule reads it.
Schedule of_list(const Schedule& schedule) {
  return read_action_list(render_csv(prove(schedule)), "order.csv").schedule;
}

TEST(ScheduleSearch, WritesOrdersThatTakeThePromisedTimeWhenTheyAreReadAgain) {
  for (const int staleness : {0, 2}) {
    const PipelineShape shape = straight(4, 2, 2 * kMinibatches);
    const std::vector<StageCost> costs = random_costs(4, 3);
    const Hardware hardware = ideal_hardware(4);
    const SearchedSchedule found =
        search_schedule(shape, costs, hardware, {.live = 5, .staleness = staleness}, kShort);
    EXPECT_TRUE(found.pace.repeats);
    const Simulation again = simulate(prove(of_list(found.proved->schedule)), costs, hardware);
    EXPECT_EQ(again.makespan, found.simulation.makespan);
    EXPECT_EQ(again.seconds_per_minibatch(), found.pace.seconds);
  }
}

TEST(ScheduleSearch, KeepsToTheMemoryThatASimulationCounts) {
  // A worker holds 100 B of weights and as many of the optimizer, then gradients, and 40 B for each
  // live micro-batch. More memory is never slower.
  const PipelineShape shape = straight(4, 8, kMinibatches);
  std::vector<StageCost> costs = alike(4, 1, 1, 1);
  for (StageCost& cost : costs) {
    cost.parameter_bytes = 100;
    cost.activation_bytes = 30;
    cost.input_bytes = cost.output_bytes = 10;
    cost.peak_bytes = 15;
  }
  const Hardware hardware = ideal_hardware(4);
  double before = kUnlimited;
  for (const std::int64_t memory : {400, 450, 500, 600, 700}) {
    const SearchedSchedule found = search_schedule(
        shape, costs, hardware,
        {.memory = std::vector<std::int64_t>(4, memory), .optimizer_state = 1}, kShort);
    const Simulation simulation = simulate(*found.proved, costs, hardware, {.optimizer_state = 1});
    for (const WorkerReport& worker : simulation.workers) EXPECT_LE(worker.peak.total(), memory);
    EXPECT_LE(found.pace.seconds, before);
    EXPECT_GE(found.pace.seconds, found.bound.seconds);
    before = found.pace.seconds;
  }
  EXPECT_EQ(before, 24);
}

TEST(ScheduleSearch, CountsTheTablesThatAnOptimizerKeeps) {
  // 100 B of weights and 40 B for each live micro-batch, and 80 B of tables at stage 1: two
  // micro-batches fewer than without them.
  const PipelineShape shape = straight(3, 8, kMinibatches);
  std::vector<StageCost> costs = alike(3, 1, 1, 1);
  for (StageCost& cost : costs) {
    cost.parameter_bytes = 100;
    cost.activation_bytes = 40;
  }
  ScheduleLimits limits{.memory = std::vector<std::int64_t>(3, 420)};
  const SearchedSchedule without = search_schedule(shape, costs, ideal_hardware(3), limits, kShort);
  limits.optimizer_tables = {0, 80, 0};
  const SearchedSchedule found = search_schedule(shape, costs, ideal_hardware(3), limits, kShort);
  const SimulationOptions options{.optimizer_tables = limits.optimizer_tables};
  const Simulation simulation = simulate(*found.proved, costs, ideal_hardware(3), options);
  for (const WorkerReport& worker : simulation.workers) EXPECT_LE(worker.peak.total(), 420);
  EXPECT_GE(found.pace.seconds, without.pace.seconds);
  limits.optimizer_tables = {0, 300, 0};
  EXPECT_THROW(search_schedule(shape, costs, ideal_hardware(3), limits, kShort), Error);
}

TEST(ScheduleSearch, RefusesLimitsThatLeaveNoRoom) {
  std::vector<StageCost> costs = alike(2, 1, 1, 1);
  costs[1].parameter_bytes = 100;
  EXPECT_THROW(search_schedule(straight(2, 2, 4), costs, ideal_hardware(2), {.memory = {1000, 99}}),
               Error);
  PipelineShape shape = straight(4, 2, 4);
  shape.placement = {0, 1, 0, 1};
  EXPECT_THROW(search_schedule(shape, alike(4, 1, 1, 1), ideal_hardware(2), {.live = 1}), Error);
}

TEST(ScheduleSearch, LeavesOutWhatStopsWhereMessagesAreTakenInOrder) {
  Hardware hardware = ideal_hardware(2);
  hardware.receives = Receives::Rendezvous;
  const auto searched = [&](int microbatches, const std::vector<int>& placement, double live) {
    return search_schedule({.stages = 4,
                            .microbatches = microbatches,
                            .minibatches = kMinibatches,
                            .placement = placement},
                           alike(4, 1, 1, 1), hardware, {.live = live}, kShort);
  };
  const SearchedSchedule looped = searched(4, {0, 1, 0, 1}, 8);
  EXPECT_EQ(looped.built_in, "interleaved");
  EXPECT_NO_THROW(simulate(*looped.proved, alike(4, 1, 1, 1), hardware));
  EXPECT_EQ(searched(8, {0, 1, 1, 0}, 5).built_in, "dualpipe_v") << "of all of a V";
  EXPECT_EQ(searched(8, {0, 1, 1, 0}, 3).from, "model_parallel") << "all others stop";
}

TEST(ScheduleSearch, RefusesPipelinesThatAreTooLarge) {
  EXPECT_THROW(search_schedule(straight(512, 512), alike(512, 1, 1, 1), ideal_hardware(512), {}),
               Error);
}

TEST(ScheduleSearch, IsFasterTheOlderWeightsMayBe) {
  // 4 stages, F = B = W = 1, one micro-batch: 9 s for its way and the weight half, over as many
  // mini-batches as may overlap; a worker works for 3 s.
  const PipelineShape shape = straight(4, 1, kMinibatches);
  const std::vector<StageCost> costs = alike(4, 1, 1, 1);
  for (const auto& [staleness, seconds] : {std::pair(0, 9.0), {1, 4.5}, {2, 3.0}, {3, 3.0}}) {
    const SearchedSchedule found =
        search_schedule(shape, costs, ideal_hardware(4), {.staleness = staleness}, kShort);
    EXPECT_LE(oldest_weights(found.proved->schedule), staleness);
    EXPECT_LE(staleness_of(*found.proved).value_or(staleness + 1), staleness);
    EXPECT_NEAR(found.bound.seconds, seconds, 1e-12);
    EXPECT_GE(found.pace.seconds, found.bound.seconds);
    EXPECT_LE(found.pace.seconds, 1.12 * seconds);  // where way and work do not fit into each other
  }
}

TEST(ScheduleSearch, FindsNoPaceBelowItsBoundWhereMinibatchesOverlap) {
  // Where S + 1 mini-batches do not divide the middle half, they end in bunches of which it may
  // have one too many. A pace that repeats itself is that of every whole number of periods.
  int repeating = 0, tried = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomStream random(seed, "stale");
    const int stages = 2 + static_cast<int>(random.below(0, 4));
    const int staleness = 1 + static_cast<int>(random.below(1, 6));
    const int microbatches = 1 + static_cast<int>(random.below(2, 3));
    const int minibatches = seed % 4 == 0 ? 5 : 6 * (staleness + 1);
    const ScheduleLimits limits{.live = static_cast<double>(2 + random.below(3, 9)),
                                .staleness = staleness};
    const std::vector<StageCost> costs =
        seed % 2 == 0 ? random_costs(stages, seed) : alike(stages, 1, 1, 1);
    const SearchedSchedule found =
        search_schedule(straight(stages, microbatches, minibatches), costs, ideal_hardware(stages),
                        limits, {.tries = 2000});
    EXPECT_GE(found.pace.seconds, found.bound.seconds * (1 - kSumRounding)) << seed;
    EXPECT_LE(found.pace.seconds * minibatches, found.simulation.makespan * (1 + kSumRounding))
        << seed;
    repeating += found.pace.repeats ? 1 : 0;
    tried += minibatches > 5 ? 1 : 0;
  }
  EXPECT_GE(repeating, tried);
}

TEST(ScheduleSearch, FindsNoPaceBelowItsBoundWhereWorkersHaveSeveralStages) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const int stages = seed % 3 == 0 ? 4 : 8;
    PipelineShape shape = straight(stages, 4, kMinibatches);
    const int workers = seed % 3 == 2 ? 2 : stages / 2;
    for (int stage = 0; stage < stages; ++stage) {
      const int place = stage % (2 * workers);
      const bool down = seed % 2 == 0 && place >= workers;
      shape.placement.push_back(down ? 2 * workers - 1 - place : stage % workers);
    }
    const SearchedSchedule found = search_schedule(shape, random_costs(stages, seed),
                                                   ideal_hardware(workers), {}, {.tries = 1000});
    EXPECT_GE(found.pace.seconds, found.bound.seconds * (1 - kSumRounding)) << seed;
    EXPECT_LE(found.pace.seconds, found.built_in_seconds * (1 + kSumRounding)) << seed;
  }
}

TEST(ScheduleSearch, IsNoSlowerThanAsynchronousSchemesOfTheSameStaleness) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const int stages = 2 + static_cast<int>(seed % 3);
    const PipelineShape shape = straight(stages, 1, kMinibatches);
    const std::vector<StageCost> costs = random_costs(stages, seed);
    const Hardware hardware = ideal_hardware(stages);
    const SearchedSchedule found =
        search_schedule(shape, costs, hardware, {.staleness = stages - 1}, kShort);
    EXPECT_LE(oldest_weights(found.proved->schedule), stages - 1);
    const Schedule other = schedule_of("pipedream", "{}", shape);
    EXPECT_LE(found.pace.seconds, simulate(prove(other), costs, hardware).seconds_per_minibatch());
  }
}

TEST(ScheduleSearch, NamesTheSchemeThatNothingBeats) {
  // With room for as many micro-batches as workers ZB-H1 is the fastest: 24 s of work and 3 s.
  const SearchedSchedule found = search_schedule(straight(4, 8, kMinibatches), alike(4, 1, 1, 1),
                                                 ideal_hardware(4), {.live = 4}, kShort);
  EXPECT_EQ(found.from, "zb_h1");
  EXPECT_EQ(found.built_in, "zb_h1");
  EXPECT_EQ(found.built_in_seconds, 27);
  EXPECT_EQ(found.pace.seconds, 27);
  EXPECT_EQ(found.gap(), 0);
}

TEST(ScheduleSearch, CountsLiveForwardsAsASetDoes) {
  for (const SchemeCase& each : every_scheme()) {
    Schedule schedule;
    try {
      schedule = schedule_of(each.name, each.options, straight(4, 4, 3));
    } catch (const Error&) {
      continue;  // a scheme that cannot run in this shape
    }
    const ProvedSchedule proved = prove(schedule);
    if (!staleness_of(proved)) continue;  // heads, or losses of other stages
    const std::vector<int> live = most_live(proved);
    for (std::size_t worker = 0; worker < live.size(); ++worker)
      EXPECT_EQ(as_size(live[worker]), held_by(schedule.workers[worker])) << scheme_text(each);
  }
}

TEST(ScheduleSearch, OrdersSeveralStagesOfAWorker) {
  PipelineShape shape = straight(8, 8, kMinibatches);
  for (const std::vector<int>& placement :
       {std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}, std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0}}) {
    shape.placement = placement;
    const SearchedSchedule found =
        search_schedule(shape, alike(8, 1, 1, 1), ideal_hardware(4), {.live = 8}, kShort);
    EXPECT_LE(held_by(found.proved->schedule), 8U);
    EXPECT_GE(found.pace.seconds, found.bound.seconds);
    EXPECT_LE(found.pace.seconds, 1.2 * found.bound.seconds);
  }
}

}  // namespace
}  // namespace pipewright
