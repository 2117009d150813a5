// SPDX-License-Identifier: Apache-2.0
// All points of a sweep, simulated: the same figures as one by one, in any number of threads.
#include "core/sweep/sweep_simulation.h"
#include "core/experiment/reading.h"

#include <map>
#include <set>

#include "core/config/merge.h"
#include "core/measuring/cost_source.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/modelled.h"
#include "core/measuring/steady_simulation.h"
#include "core/planning/best_points.h"
#include "core/planning/print_points.h"
#include "core/simulation/simulate.h"
#include "tests/unit/config/error_text.h"

namespace pipewright {
namespace {

constexpr const char* kHardware =
    "hardware: {hosts: 8, devices: {count: 1, teraflops: 1, memory_gb_per_s: 100}, "
    "between: {latency_us: 5, bandwidth_gb_per_s: 1}}\n";
constexpr const char* kModel =
    "name: x\nmodel: {name: mlp, widths: [64, 64, 64, 64, 64, 64, 64, 64, 10]}\n";

Value file(const std::string& rest) {
  return parse_yaml(concat(kModel, kHardware, rest), "x.yaml");
}

SimulatedSweep simulated(const Value& document, int jobs = 1) {
  return simulate_sweep(document, {.jobs = jobs});
}

/// A point as `simulate` without --sweep does it.
Simulation alone(const SweepPoint& point, int minibatches) {
  const Experiment experiment = read_experiment(point.document);
  const Hardware hardware = HardwareSource().of(point.document, experiment.shape(1));
  const SourcedCosts costs = CostSource(CostFiles()).of(experiment, hardware);
  const ProvedSchedule proved = prove(experiment.schedule(minibatches));
  const double slots = experiment.holdings(proved.schedule).slots();
  return simulate(proved, costs.stages, hardware, {.optimizer_state = slots});
}

const char* const kEveryScheme =
    "pipeline: {balance: time}\n"
    "sweep: {grid: {scheme.name: [gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, pipedream, "
    "pipedream_2bw, spectrain, xpipe, pipeoptim, pipemare, delayed_sgd, model_parallel], "
    "pipeline.stages: [2, 4], pipeline.microbatches: [1, 8], "
    "hardware.between.bandwidth_gb_per_s: [0.001, 1, 0]}}\n";

TEST(SweepSimulation, ProvesTheScheduleOfAPointOnce) {
  const Value document =
      file("pipeline: {stages: 4, microbatches: 4}\nscheme: {name: one_f_one_b}\n");
  const Experiment experiment = read_experiment(document);
  const Hardware hardware = HardwareSource().of(document, experiment.shape(1));
  CostSource costs{CostFiles()};
  SteadySimulator simulator(experiment, costs);
  const std::int64_t before = proved_actions();
  simulator.on(hardware, {.minibatches = 12});
  EXPECT_EQ(proved_actions() - before, std::ssize(simulator.schedule(12).order));
}

TEST(SweepSimulation, HasTheFiguresOfEachPointSimulatedAlone) {
  const Value document = file(kEveryScheme);
  const SimulatedSweep sweep = simulated(document);
  const std::vector<SweepPoint> points = expand_sweep(document);
  ASSERT_EQ(sweep.points.size(), points.size());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SimulatedPoint& point = sweep.points[i];
    if (!point.simulated()) continue;
    SCOPED_TRACE(point.title);
    const Simulation same = alone(points[i], point.minibatches);
    EXPECT_EQ(point.seconds, same.seconds_per_minibatch());
    for (std::size_t w = 0; w < same.workers.size(); ++w)
      EXPECT_EQ(point.peaks[w], same.workers[w].peak.total());
    std::int64_t bytes = 0;
    for (const LinkReport& link : same.links) bytes += link.traffic.bytes;
    EXPECT_EQ(point.bytes_per_minibatch * point.minibatches, bytes);
    ++compared;
  }
  EXPECT_GT(compared, points.size() / 2);
}

TEST(SweepSimulation, ASteadyPaceIsThatOfManyMoreMiniBatchesAndPeaksAreThoseOfSimulate) {
  const Value document = file(kEveryScheme);
  const SimulatedSweep sweep = simulated(document);
  const std::vector<SweepPoint> points = expand_sweep(document);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SimulatedPoint& point = sweep.points[i];
    if (!point.simulated() || !point.steady) continue;
    SCOPED_TRACE(point.title);
    const Simulation longer = alone(points[i], 64);
    EXPECT_NEAR(point.seconds, longer.seconds_per_minibatch(), 1e-4 * point.seconds);
    // Over a link that is far too slow messages heap up without end; `simulate` sees no more.
    const Simulation usual =
        alone(points[i], steady_minibatches(read_experiment(points[i].document)));
    for (std::size_t w = 0; w < usual.workers.size(); ++w)
      EXPECT_EQ(point.peaks[w], usual.workers[w].peak.total()) << "worker " << w;
    ++compared;
  }
  EXPECT_GT(compared, points.size() / 2);
}

/// `table --hardware` and `simulate --sweep` ask one simulator.
TEST(SweepSimulation, HasTheFiguresThatTablesOfEverySchemeHave) {
  const Value document = file(
      "sweep: {grid: {scheme.name: [gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, pipedream, "
      "pipedream_2bw, spectrain, xpipe, pipeoptim, pipemare, delayed_sgd, model_parallel], "
      "pipeline.stages: [2, 4], pipeline.microbatches: [1, 8]}}\n");
  const SimulatedSweep sweep = simulated(document);
  const std::vector<SweepPoint> points = expand_sweep(document);
  const Hardware hardware = HardwareSource().of(document, PipelineShape());
  std::set<std::string> schemes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SimulatedPoint& point = sweep.points[i];
    if (!point.simulated()) continue;
    SCOPED_TRACE(point.title);
    std::vector<RunRecord> runs(1);
    runs[0].config = read_experiment(points[i].document).resolved;
    add_modelled(runs, hardware);
    const std::map<std::string, double> figures(runs[0].modelled.begin(), runs[0].modelled.end());
    EXPECT_EQ(figures.at("modelled_bubble"), point.bubble);
    EXPECT_EQ(figures.at("modelled_samples_per_second"), point.samples_per_second);
    EXPECT_EQ(figures.at("modelled_required_mib_per_s"),
              static_cast<double>(point.bytes_per_minibatch) / point.seconds / 1024 / 1024);
    EXPECT_EQ(figures.at("modelled_worker_memory_gib"),
              static_cast<double>(point.largest_peak()) / 1024 / 1024 / 1024);
    schemes.insert(point.candidate);
  }
  EXPECT_EQ(schemes.size(), 13U);
}

/// Most weights are those of the third stage.
TEST(SweepSimulation, SaysOfAPointThatDoesNotFitWhichWorkerLacksMost) {
  const Value document = parse_yaml(
      "name: x\nmodel: {name: mlp, widths: [64, 64, 64, 1024, 10]}\n"
      "hardware: {hosts: 8, devices: {teraflops: 1, memory_gb_per_s: 100, memory_gib: 1e-6}}\n"
      "pipeline: {stages: 4, microbatches: 2}\n"
      "sweep: {grid: {scheme.name: [gpipe, one_f_one_b]}}\n",
      "x.yaml");
  for (const SimulatedPoint& point : simulated(document).points) {
    const auto most = std::ranges::max_element(point.peaks);
    ASSERT_GT(point.peaks.front(), 2000) << "the first worker does not fit, either";
    EXPECT_GT(*most, 4 * point.peaks.front());
    EXPECT_EQ(point.reason,
              concat("worker ", most - point.peaks.begin(), " needs ", bytes_text(*most),
                     ", its device has ", bytes_text(std::int64_t{1074})));
  }
}

TEST(SweepSimulation, DoesNotDependOnTheNumberOfThreads) {
  const Value document = file(kEveryScheme);
  const SimulatedSweep one = simulated(document, 1), three = simulated(document, 3);
  EXPECT_EQ(sweep_csv(one, best_points(one)), sweep_csv(three, best_points(three)));
}

TEST(SweepSimulation, GoesOnAfterPointsThatAreRefused) {
  const SimulatedSweep sweep =
      simulated(file("sweep: {grid: {pipeline.stages: [4, 40], hardware.hosts: [2, 8]}}\n"));
  ASSERT_EQ(sweep.points.size(), 4U);
  using State = SimulatedPoint::State;
  EXPECT_EQ(sweep.points[0].state, State::Refused);
  EXPECT_NE(sweep.points[0].reason.find("has 2 devices, but the schedule needs one for each of 4"),
            std::string::npos)
      << sweep.points[0].reason;
  EXPECT_EQ(sweep.points[0].workers, 4);
  EXPECT_EQ(sweep.points[1].state, State::Fits);
  EXPECT_NE(sweep.points[3].reason.find("pipeline.stages is 40; the model has 8 layers"),
            std::string::npos)
      << sweep.points[3].reason;
}

TEST(SweepSimulation, SaysWhichDevicesAreTooSmall) {
  const SimulatedSweep sweep =
      simulated(file("sweep: {grid: {hardware.devices.memory_gib: [0.00001, 1, 0]}}\n"));
  EXPECT_EQ(sweep.points[0].state, SimulatedPoint::State::TooLarge);
  EXPECT_NE(sweep.points[0].reason.find("worker 0 needs "), std::string::npos);
  EXPECT_TRUE(sweep.points[1].fits());
  EXPECT_TRUE(sweep.points[2].fits());  // not known
}

TEST(SweepSimulation, CutsAnewWhereTheRatesOfTheHardwareDecide) {
  const Value document = file(
      "pipeline: {balance: time, stages: 3}\n"
      "sweep: {grid: {hardware.devices.memory_gb_per_s: [0.001, 100000]}}\n");
  const SimulatedSweep sweep = simulated(document);
  const std::vector<SweepPoint> points = expand_sweep(document);
  for (std::size_t i = 0; i < points.size(); ++i)
    EXPECT_EQ(sweep.points[i].seconds,
              alone(points[i], sweep.points[i].minibatches).seconds_per_minibatch());
}

TEST(SweepSimulation, NeedsASweep) {
  EXPECT_NE(error_text([] { simulated(file("")); }).find("the file has no sweep"),
            std::string::npos);
}

TEST(HardwareSource, LaysTheSectionOverTheFile) {
  const Hardware hardware = HardwareSource().of(
      parse_yaml("hardware: {hosts: 2, devices: {count: 4, memory_gib: 3}}", "x.yaml"),
      PipelineShape());
  EXPECT_EQ(hardware.devices.size(), 8U);
  EXPECT_EQ(hardware.devices[0].memory, std::int64_t{3} << 30);
  EXPECT_EQ(HardwareSource().of(Value::mapping(), {.stages = 5}).devices.size(), 5U);
  EXPECT_NE(error_text([] {
              HardwareSource().of(parse_yaml("hardware: {hostss: 2}", "x.yaml"), PipelineShape());
            }).find("x.yaml:1:12: unknown option 'hardware.hostss'; did you mean 'hosts'?"),
            std::string::npos);
}

TEST(HardwareSource, ReportsAFileThatIsNoneWithTheOtherProblems) {
  const std::string said = error_text([] {
    HardwareSource().of(
        parse_yaml("hardware: {file: /etc/passwd, hostss: 2, links: [{from: 0, to: 3}]}", "x.yaml"),
        PipelineShape());
  });
  EXPECT_NE(said.find("x.yaml:1:18: hardware.file: /etc/passwd: is no description of hardware"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("did you mean 'hosts'"), std::string::npos) << said;
  EXPECT_EQ(said.find("links"), std::string::npos) << "device 3 may be in the file: " << said;
  EXPECT_EQ(said.find("root"), std::string::npos) << said;
}

}  // namespace
}  // namespace pipewright
