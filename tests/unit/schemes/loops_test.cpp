// SPDX-License-Identifier: Apache-2.0
// A long schedule as a short one with a loop: the same actions, the same verdict, an order in which
// all of it can be performed.
#include "core/schedule/find_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/versions.h"
#include "tests/unit/schedule/naive_reading.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

/// Makes the scheme's schedules of that shape.
ScheduleMaker maker(const SchemeReading& reading, PipelineShape shape) {
  return [&reading, shape](int minibatches) mutable {
    shape.minibatches = minibatches;
    return reading.scheme->schedule(shape);
  };
}

/// The execution order of a loop performed in full.
std::vector<ActionPlace> whole_order(const ProvedSchedule& proved) {
  const Loop& loop = *proved.loop;
  std::vector<int> workers;
  for (std::size_t i = 0; i < loop.order.end; ++i) workers.push_back(proved.order[i].first);
  for (int round = 1; round < loop.rounds; ++round)
    for (std::size_t i = loop.order.begin; i < loop.order.end; ++i)
      workers.push_back(proved.order[i].first);
  for (std::size_t i = loop.order.end; i < proved.order.size(); ++i)
    workers.push_back(proved.order[i].first);
  std::vector<int> done(proved.schedule.workers.size(), 0);
  std::vector<ActionPlace> order;
  for (const int worker : workers) order.emplace_back(worker, done[as_size(worker)]++);
  return order;
}

/// Checks the staleness of a loop's gradients against that in the whole schedule.
void expect_staleness_of(const ProvedSchedule& proved, const Versions& whole) {
  EXPECT_EQ(proved.versions.waiting, whole.waiting);
  const Loop& loop = *proved.loop;
  for (std::size_t worker = 0; worker < whole.workers.size(); ++worker) {
    const auto [begin, end] = loop.bodies[worker];
    const std::size_t copies = as_size(loop.rounds - 1) * (end - begin);
    for (std::size_t i = 0; i < whole.workers[worker].size(); ++i) {
      const std::size_t once = i < end            ? i
                               : i < end + copies ? begin + (i - begin) % (end - begin)
                                                  : i - copies;
      ASSERT_EQ(proved.versions.workers[worker][once].staleness, whole.workers[worker][i].staleness)
          << "worker " << worker << ", action " << i;
    }
  }
}

/// Checks a loop against the whole schedule.
void expect_whole(const ProvedSchedule& proved, const Schedule& whole) {
  ASSERT_EQ(proved.minibatches(), whole.shape.minibatches);
  ASSERT_EQ(unrolled(proved.schedule, *proved.loop, proved.loop->rounds), whole);
  EXPECT_NO_THROW(expect_staleness_of(proved, prove(whole).versions));
  EXPECT_EQ(naive::fault_of_order(whole, whole_order(proved)), "");
}

TEST(Loops, AreFoundWhereReplicasShareWorkers) {
  for (const SchemeCase& each : schemes_that_share_workers())
    for (PipelineShape shape : {PipelineShape{.stages = 2, .replicas = 2},
                                PipelineShape{.stages = 4, .replicas = 2, .microbatches = 4},
                                PipelineShape{.stages = 4, .replicas = 4, .microbatches = 3}}) {
      shape = shape_that_shares(each.name, shape);
      const SchemeReading reading(each.name, each.options);
      SCOPED_TRACE(concat(each.name, " ", shape.stages, " stages, ", shape.replicas, " replicas"));
      const ScheduleMaker make = maker(reading, shape);
      const auto proved = find_loop(make, 151);
      ASSERT_TRUE(proved);
      expect_whole(*proved, make(151));
    }
}

/// A gradient from before the loop may be applied in it, and is as stale as it was there.
TEST(Loops, BeginBehindTheGradientsThatWaitWhileThePipelineFills) {
  for (const auto& [scheme, options] :
       {std::pair("pipedream", "{}"), {"delayed_sgd", "{delay: [5, 4, 3, 2]}"}})
    for (const int delay : {1, 8, 40}) {
      const auto make = [&](int minibatches) {
        Schedule schedule = schedule_of(scheme, options, {.stages = 4, .minibatches = minibatches});
        schedule.gradient_delay = delay;
        schedule.waiting.assign(4, std::vector<int>(as_size(delay), 7));
        return schedule;
      };
      const auto proved = find_loop(make, 400);
      ASSERT_TRUE(proved) << delay;
      expect_whole(*proved, make(400));
    }
}

TEST(Loops, AreFoundInEverySchemeThatRepeats) {
  int found = 0;
  for (const SchemeCase& each : every_scheme())
    for (PipelineShape shape :
         {PipelineShape{.stages = 4}, PipelineShape{.stages = 3, .microbatches = 4},
          PipelineShape{.stages = 2, .replicas = 2, .microbatches = 2},
          PipelineShape{.stages = 4, .placement = {0, 1, 0, 1}},
          PipelineShape{.stages = 8, .microbatches = 8}}) {
      const SchemeReading reading(each.name, each.options);
      if (!reading.scheme->repeats()) continue;
      if (each.name == "data_parallel") shape.stages = 1;
      if (each.name == "data_parallel") shape.placement.clear();
      if (each.name == "pipedream_2bw") shape.microbatches = shape.stages;
      if (const auto own = reading.scheme->placement(shape.stages); !own.empty())
        shape.placement = own;
      const int minibatches = 150 + found % 7;
      SCOPED_TRACE(concat(each.name, each.options, " ", shape.stages, " stages, ",
                          shape.microbatches, " micro-batches, ", shape.replicas, " replicas, ",
                          testing::PrintToString(shape.placement)));
      const ScheduleMaker make = maker(reading, shape);
      const auto proved = find_loop(make, minibatches);
      if (each.name == "interlocking" && !proved) {  // stages that share a worker drift apart
        EXPECT_FALSE(shape.placement.empty());
        continue;
      }
      ASSERT_TRUE(proved);
      expect_whole(*proved, make(minibatches));
      ++found;
    }
  EXPECT_GT(found, 100);
}

/// A slip that a scheme makes at some mini-batches: in all, in every second or third, in the first
/// ones or in the last.
struct Slip {
  enum class What { Swap, Drop, Repeat, Weights, Loss, Microbatch, Scale };
  enum class When { Always, EverySecond, EveryThird, First, Last };
  What what = What::Swap;
  When when = When::Always;
  Action like;       ///< stage, replica, kind, micro-batch and loss of the actions it concerns
  int distance = 1;  ///< of a swap, or of a version

  bool concerns(const Action& action, int minibatches) const {
    if (action.kind != like.kind || action.stage != like.stage || action.replica != like.replica ||
        action.microbatch != like.microbatch || action.loss != like.loss)
      return false;
    switch (when) {
      case When::Always: return true;
      case When::EverySecond: return action.minibatch % 2 == 0;
      case When::EveryThird: return action.minibatch % 3 == 0;
      case When::First: return action.minibatch < distance;
      case When::Last: return action.minibatch >= minibatches - distance;
    }
    return false;
  }

  void make_at(std::vector<Action>& actions, std::size_t i) const {
    const auto at = actions.begin() + static_cast<std::ptrdiff_t>(i);
    Action& action = *at;
    switch (what) {
      case What::Swap:
        if (i + as_size(distance) < actions.size()) std::iter_swap(at, at + distance);
        break;
      case What::Drop: actions.erase(at); break;
      case What::Repeat: actions.insert(at, Action(action)); break;
      case What::Weights: action.weights = weights(action.minibatch); break;
      case What::Loss: action.loss += distance % 2 == 0 ? 1 : -1; break;
      case What::Microbatch: action.microbatch += distance % 2 == 0 ? 1 : -1; break;
      case What::Scale: action.scale = 0.5; break;
    }
  }
  Weights weights(int minibatch) const {
    switch (distance) {
      case 1: return Weights::latest();
      case 2: return Weights::latest(2);
      case 3: return Weights::of_forward();
      default: return Weights::of_version(std::max(0, minibatch - distance));
    }
  }

  Schedule in(Schedule schedule) const {
    const int worker = schedule.shape.worker_of(like.stage, like.replica);
    auto& actions = schedule.workers[as_size(worker)];
    for (std::size_t i = actions.size(); i-- > 0;)
      if (concerns(actions[i], schedule.shape.minibatches)) make_at(actions, i);
    return schedule;
  }
};

Slip random_slip(const Schedule& schedule, std::mt19937& random) {
  auto upto = [&](std::size_t most) { return random() % most; };
  const auto& actions = schedule.workers[upto(schedule.workers.size())];
  return {.what = static_cast<Slip::What>(upto(7)),
          .when = static_cast<Slip::When>(upto(5)),
          .like = actions[upto(actions.size())],
          .distance = 1 + static_cast<int>(upto(5))};
}

/// The loop, or none if the schedules do not go on as the loop would.
std::optional<ProvedSchedule> loop_if_kept(const ScheduleMaker& make, int minibatches) {
  try {
    return find_loop(make, minibatches);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Schedule);
    return {};
  }
}

bool accepted(const Schedule& schedule) {
  try {
    prove(schedule);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The proof of a loop never accepts what the proof of the whole schedule refuses, and what it
/// accepts is that schedule. It may only fail to find a loop.
TEST(Loops, AreNotFoundInWhatTheWholeProofRefuses) {
  constexpr int kMinibatches = 121;
  std::mt19937 random(11);
  int loops = 0, longer_rounds = 0, refused = 0, missed = 0;
  for (const SchemeCase& each : every_scheme()) {
    const SchemeReading reading(each.name, each.options);
    if (!reading.scheme->repeats()) continue;
    PipelineShape shape{.stages = 3, .microbatches = 1 + static_cast<int>(random() % 3)};
    if (each.name == "data_parallel") shape.stages = 1;
    if (each.name == "pipedream_2bw") shape.microbatches = shape.stages;
    if (const auto own = reading.scheme->placement(shape.stages); !own.empty())
      shape.placement = own;
    if (random() % 3 == 0) shape.replicas = 2;
    const ScheduleMaker make = maker(reading, shape);
    for (int i = 0; i < 25; ++i) {
      const Slip slip = random_slip(make(4), random);
      const ScheduleMaker wrong = [&](int minibatches) { return slip.in(make(minibatches)); };
      const Schedule whole = wrong(kMinibatches);
      const bool right = accepted(whole);
      const auto proved = loop_if_kept(wrong, kMinibatches);
      if (proved) {
        ASSERT_TRUE(right) << each.name << each.options;
        expect_whole(*proved, whole);
        ++loops;
        longer_rounds += proved->loop->step.minibatches > 1;
      } else {
        ++(right ? missed : refused);
      }
    }
  }
  std::printf("%d loops, %d of rounds of several mini-batches; %d refused; %d right but no loop\n",
              loops, longer_rounds, refused, missed);
  EXPECT_GE(loops + refused + missed, 1000);
  EXPECT_GT(loops, 300);
  EXPECT_GT(longer_rounds, 50);
  EXPECT_GT(refused, 300);
  EXPECT_LT(missed, loops / 10);
}

/// One that flushes every mini-batch from the hundredth on, and promises to repeat itself.
TEST(Loops, OfASchemeThatChangesLaterAreRefused) {
  const ScheduleMaker make = [](int minibatches) {
    const PipelineShape shape{.stages = 3, .microbatches = 2, .minibatches = minibatches};
    return pipeline_schedule(shape, {.flush = minibatches > 100});
  };
  EXPECT_TRUE(find_loop(make, 90));
  try {
    find_loop(make, 120);
    ADD_FAILURE() << "the broken promise is believed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Schedule);
    EXPECT_NE(error.message().find("that of 120 mini-batches does not"), std::string::npos)
        << error.message();
  }
  EXPECT_THROW(find_loop(make, 2'000'000), Error) << "at other lengths, of 200,000 actions at most";
}

/// A schedule may change late; a scheme that says nothing about it is asked for the whole.
TEST(Loops, AreOfSchemesThatSayTheyRepeat) {
  EXPECT_FALSE(SchemeReading("pipemare", "{}").scheme->repeats()) << "its rates are annealed";
  EXPECT_TRUE(SchemeReading("pipedream", "{}").scheme->repeats());
}

TEST(Loops, AreNotLookedForInShortSchedules) {
  const SchemeReading reading("pipedream", "{}");
  EXPECT_FALSE(find_loop(maker(reading, {.stages = 2}), 23));
  EXPECT_TRUE(find_loop(maker(reading, {.stages = 2}), 24));
}

}  // namespace
}  // namespace pipewright
