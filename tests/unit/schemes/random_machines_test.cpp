// SPDX-License-Identifier: Apache-2.0
// On machines made up at random — stragglers, slow links, buses, few copy engines, sends that
// block, receives in order, bounded links, slow links to the host — simulate() says what a plain
// list of events says.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/cost/cost_table.h"
#include "core/drawing/render.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/offload.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/simulation/naive_clock.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : stream_(seed, "random machines") {}
  int upto(int most) { return static_cast<int>(stream_.below(next_++, as_size(most + 1))); }
  double between(double least, double most) {
    return least + (most - least) * stream_.uniform(next_++);
  }
  bool coin() { return upto(1) == 1; }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

PipelineShape shape_of(Dice& dice, const SchemeCase& each) {
  const std::string& scheme = each.name;
  PipelineShape shape{.stages = 1 + dice.upto(4),
                      .replicas = 1 + dice.upto(2),
                      .microbatches = 1 + dice.upto(3),
                      .minibatches = 1 + dice.upto(3),
                      .link_capacity = dice.upto(2)};
  if (scheme == "pipedream_2bw") shape.microbatches = std::max(shape.microbatches, shape.stages);
  if (scheme == "data_parallel") shape.stages = 1;
  if (shares_workers(scheme)) return shape_that_shares(scheme, shape);
  const SchemeReading reading(scheme, each.options);
  shape.placement = reading.scheme->placement(shape.stages);
  if (shape.placement.empty() && shape.stages > 2 && dice.coin())
    for (int stage = 0; stage < shape.stages; ++stage) shape.placement.push_back(stage % 2);
  return shape;
}

std::vector<StageCost> costs_of(Dice& dice, int stages) {
  std::vector<StageCost> costs(as_size(stages));
  const auto reduced = [&]() -> std::optional<std::array<std::int64_t, 2>> {
    if (dice.coin()) return {};
    return {{dice.upto(1000), dice.upto(500)}};
  };
  for (StageCost& stage : costs)
    stage = {.forward = dice.between(0.5, 2),
             .backward = dice.between(0.5, 3),
             .backward_input = dice.between(0.2, 2),
             .backward_weight = dice.between(0.2, 2),
             .backward_sent = dice.coin() ? dice.between(0.1, 0.5) : 0,
             .backward_input_sent = dice.coin() ? dice.between(0.1, 0.2) : 0,
             .head = dice.between(0.1, 1),
             .update = dice.between(0.01, 0.5),
             .new_version = dice.coin() ? dice.between(0.1, 1) : 0,
             .prediction = dice.coin() ? dice.between(0.1, 1) : 0,
             .fused_prediction = dice.coin() ? std::optional(dice.between(0.1, 1)) : std::nullopt,
             .coding_forward = dice.coin() ? dice.between(0.01, 0.2) : 0,
             .coding_backward = dice.coin() ? dice.between(0.01, 0.2) : 0,
             .coding_reduce = dice.coin() ? dice.between(0.1, 1) : 0,
             .fused_pair = dice.coin() ? std::optional(dice.between(1, 5)) : std::nullopt,
             .input_bytes = dice.upto(2000),
             .output_bytes = dice.upto(2000),
             .reduced_bytes = reduced(),
             .activation_bytes = dice.upto(3000),
             .parameter_bytes = dice.upto(2000)};
  return costs;
}

LinkSpeed speed_of(Dice& dice) {
  return {.latency = dice.between(0, 0.5),
          .bandwidth = dice.between(500, 5000),
          .latency_occupies = dice.upto(2) == 0};
}

Hardware machine_of(Dice& dice, int devices) {
  Hardware hardware = ideal_hardware(devices);
  hardware.devices_per_host = 1 + dice.upto(3);
  hardware.within = speed_of(dice);
  hardware.between = speed_of(dice);
  hardware.host = speed_of(dice);
  for (Device& device : hardware.devices)
    device = {.speed = dice.between(0.5, 2), .slowdown = dice.between(1, 1.5)};
  for (int buses = dice.upto(3); buses > 0; --buses) {
    Bus bus{.crossing = static_cast<Bus::Crossing>(dice.upto(3)),
            .bandwidth = dice.between(500, 5000)};
    for (int device = 0; device < devices; ++device)
      if (dice.coin()) bus.devices.push_back(device);
    hardware.buses.push_back(bus);
  }
  hardware.copy_engines = dice.upto(2);
  hardware.sending_blocks = dice.upto(3) == 0;
  if (dice.coin()) hardware.receives = dice.coin() ? Receives::InOrder : Receives::Rendezvous;
  if (dice.upto(3) == 0) {
    hardware.receives = Receives::ProgramOrder;
    hardware.buses.clear();
    hardware.copy_engines = 0;
    hardware.sending_blocks = false;
  }
  hardware.overlap = dice.coin() ? dice.between(0, 1) : 0;
  return hardware;
}

/// Nothing where the scheme refuses the shape.
std::optional<Schedule> some_schedule(Dice& dice, const SchemeCase& each,
                                      const PipelineShape& shape) {
  try {
    const Schedule plain = schedule_of(each.name, each.options, shape);
    switch (dice.upto(2)) {
      case 0: return plain;
      case 1: return with_recomputation(plain, Recomputation::ExceptLast);
      default: return with_offload(plain, dice.upto(2));
    }
  } catch (const Error&) {
    return {};
  }
}

bool may_run(const Schedule& schedule) {
  try {
    prove(schedule);
    return true;
  } catch (const Error&) {  // a deadlock of bounded links
    return false;
  }
}

/// The spans of the simulation; nothing where it says that the schedule stops.
std::optional<std::vector<std::vector<Span>>> simulated_spans(const Schedule& schedule,
                                                              const std::vector<StageCost>& costs,
                                                              const Hardware& hardware) {
  try {
    return simulate(prove(schedule), costs, hardware).spans;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Schedule);
    EXPECT_NE(std::string(error.what()).find("deadlock: "), std::string::npos) << error.what();
    return {};
  }
}

TEST(RandomMachine, TakesAsLongAsAPlainListOfEventsSays) {
  int compared = 0, stopped = 0, met = 0, asked = 0, copied = 0, paired = 0;
  std::vector<SchemeCase> cases = every_scheme();
  std::ranges::copy(schemes_that_share_workers(), std::back_inserter(cases));
  for (const SchemeCase& each : cases)
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Dice dice(seed + stable_hash(each.name + each.options));
      const PipelineShape shape = shape_of(dice, each);
      const auto made = some_schedule(dice, each, shape);
      if (!made) continue;
      Schedule schedule = *made;
      const std::vector<StageCost> costs = costs_of(dice, shape.stages);
      const Hardware hardware = machine_of(dice, schedule.shape.workers());
      // A worker that sends what it has made and takes the input of its next pass makes room for
      // another one to send at the same moment; a bus may serve either of them first.
      if (shares_workers(each.name) && !hardware.buses.empty()) schedule.shape.link_capacity = 0;
      if (!may_run(schedule)) continue;
      naive::Clock plain(schedule, costs, hardware);
      const auto expected = plain.spans();
      const auto spans = simulated_spans(schedule, costs, hardware);
      ASSERT_EQ(spans.has_value(), plain.ended())
          << each.name << " " << each.options << ", seed " << seed << "\n"
          << render_text(schedule);
      if (!spans) {
        ++stopped;
        continue;
      }
      const auto& simulated = *spans;
      met += hardware.receives == Receives::Rendezvous ? 1 : 0;
      asked += hardware.receives == Receives::ProgramOrder ? 1 : 0;
      for (const auto& actions : schedule.workers)
        for (const Action& action : actions) {
          copied += action.kind == ActionKind::Fetch ? 1 : 0;
          paired += action.with_next && costs[as_size(action.stage)].fused_pair ? 1 : 0;
        }
      for (std::size_t w = 0; w < expected.size(); ++w)
        for (std::size_t i = 0; i < expected[w].size(); ++i) {
          ASSERT_NEAR(simulated[w][i].begin, expected[w][i].begin,
                      tolerance::seconds(expected[w][i].end))
              << each.name << " " << each.options << ", seed " << seed << ", worker " << w
              << ", action " << i << "\n"
              << render_text(schedule);
          ASSERT_NEAR(simulated[w][i].end, expected[w][i].end,
                      tolerance::seconds(expected[w][i].end));
        }
      ++compared;
    }
  EXPECT_GT(compared, 500);
  EXPECT_GT(stopped, 50);
  EXPECT_GT(met, 50);
  EXPECT_GT(asked, 50);
  EXPECT_GT(copied, 500);
  EXPECT_GT(paired, 100);
}

TEST(RandomMachine, HasNoLinkOrBusThatIsBusyForLongerThanTheRun) {
  constexpr std::int64_t kHeavy = 100;
  int loaded = 0;
  for (const SchemeCase& each : every_scheme())
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Dice dice(seed + stable_hash(each.name + each.options));
      const PipelineShape shape = shape_of(dice, each);
      const auto schedule = some_schedule(dice, each, shape);
      if (!schedule || !may_run(*schedule)) continue;
      std::vector<StageCost> costs = costs_of(dice, shape.stages);
      const Hardware hardware = machine_of(dice, schedule->shape.workers());
      for (StageCost& cost : costs) {  // all-reduces do not wait for messages
        cost.input_bytes = cost.output_bytes = 0;
        cost.parameter_bytes *= kHeavy;
      }
      Simulation simulation;
      try {
        simulation = simulate(prove(*schedule), costs, hardware);
      } catch (const Error&) {  // it stops on this machine
        continue;
      }
      const double most = simulation.makespan + tolerance::seconds(simulation.makespan);
      for (const LinkReport& link : simulation.links)
        EXPECT_LE(link.traffic.busy, most) << each.name << ", seed " << seed;
      for (std::size_t bus = 0; bus < simulation.buses.size(); ++bus) {
        const Traffic& traffic = simulation.buses[bus];
        EXPECT_LE(traffic.busy, most) << each.name << ", seed " << seed;
        EXPECT_NEAR(traffic.busy,
                    static_cast<double>(traffic.bytes) / hardware.buses[bus].bandwidth,
                    tolerance::seconds(traffic.busy) +
                        static_cast<double>(traffic.messages) / hardware.buses[bus].bandwidth)
            << "a byte of each message is lost to whole numbers";
        loaded += traffic.busy > simulation.makespan / 2 ? 1 : 0;
      }
    }
  EXPECT_GT(loaded, 50);
}

}  // namespace
}  // namespace pipewright
