// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_simulation.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/wording.h"
#include "core/config/merge.h"
#include "core/experiment/reading.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/steady_simulation.h"
#include "core/sweep/point_reader.h"
#include "core/sweep/sweep_plan.h"
#include "core/sweep/varied.h"

namespace pipewright {
namespace {

constexpr const char* kSimulates = "simulates";
constexpr std::size_t kMostOfATask = 64;  ///< points, so that threads end at about the same time

/// Points that differ in their hardware only, by their indices. One thread simulates them in turn.
using PointTask = std::vector<std::size_t>;

std::vector<PointTask> tasks_of(const std::vector<SweepPoint>& points) {
  std::vector<PointTask> tasks;
  std::map<std::string, std::size_t> open;  // key → the last task of such points
  for (std::size_t i = 0; i < points.size(); ++i) {
    Value document = points[i].document;
    std::erase_if(document.fields, [](const auto& field) { return field.first == "hardware"; });
    const auto [known, added] = open.emplace(key_of(document), tasks.size());
    if (!added && tasks[known->second].size() == kMostOfATask) known->second = tasks.size();
    if (known->second == tasks.size()) tasks.emplace_back();
    tasks[known->second].push_back(i);
  }
  return tasks;
}

/// "worker 1 needs 9.31 GiB, its device has 8.00 GiB", of the worker that lacks most; "" if every
/// worker fits.
std::string overflow(const Simulation& simulation, const Hardware& hardware) {
  std::int64_t most = 0;
  std::string text;
  for (std::size_t w = 0; w < simulation.workers.size(); ++w) {
    const std::int64_t need = simulation.workers[w].peak.total(), has = hardware.devices[w].memory;
    if (has == 0 || need - has <= most) continue;
    most = need - has;
    text = concat("worker ", w, " needs ", bytes_text(need), ", its device has ", bytes_text(has));
  }
  return text;
}

void report(const SteadySimulation& steady, const Hardware& hardware, SimulatedPoint& point) {
  const Simulation& simulation = steady.simulation;
  const SteadyFigures figures = steady.figures();
  point.minibatches = steady.minibatches;
  point.steady = steady.is_steady;
  point.seconds = figures.seconds;
  point.samples_per_second = figures.samples_per_second;
  point.bubble = figures.bubble;
  point.bytes_per_minibatch = figures.bytes;
  for (const WorkerReport& worker : simulation.workers) point.peaks.push_back(worker.peak.total());
  point.reason = overflow(simulation, hardware);
  point.state =
      point.reason.empty() ? SimulatedPoint::State::Fits : SimulatedPoint::State::TooLarge;
}

/// Simulates the points of a sweep, which several threads share out among themselves.
class Simulator {
 public:
  Simulator(const std::vector<SweepPoint>& points, const SweepSimulationSettings& settings,
            SimulatedSweep& sweep)
      : points_(points),
        settings_(settings),
        tasks_(tasks_of(points)),
        hardware_(settings.hardware),
        costs_(settings.costs),
        sweep_(sweep) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      const auto count = std::min(as_size(settings_.jobs), tasks_.size());
      for (std::size_t i = 1; i < count; ++i) threads.emplace_back([this] { work(); });
      work();
    }
    const Lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    sweep_.costs_from.assign(origins_.begin(), origins_.end());
    sweep_.untimed.assign(untimed_.begin(), untimed_.end());
  }

 private:
  /// Simulates tasks until none is left.
  void work() noexcept {
    for (const PointTask* task = next(); task != nullptr; task = next()) try {
        perform(*task);
      } catch (...) {
        const Lock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
  }

  const PointTask* next() {
    const Lock lock(mutex_);
    return failure_ || taken_ == tasks_.size() ? nullptr : &tasks_[taken_++];
  }

  void perform(const PointTask& task) {
    std::optional<SteadySimulator> simulator;
    for (const std::size_t i : task) {
      SimulatedPoint& point = sweep_.points[i];
      try {
        if (!simulator) simulator.emplace(read_experiment(points_[i].document, {}, forms_), costs_);
        point.workers = simulator->workers();
        const Hardware hardware = hardware_.of(points_[i].document, simulator->shape());
        const SteadySimulation steady =
            simulator->on(hardware, {.minibatches = settings_.minibatches});
        report(steady, hardware, point);
        done(&steady);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::Bug) throw;
        point.reason = join(split(error.message(), '\n'), "; ");
        done(nullptr);
      }
    }
  }

  /// Counts a point; null: a refused one.
  void done(const SteadySimulation* of) {
    const Lock lock(mutex_);
    if (of != nullptr) origins_.insert(of->costs_from);
    if (of != nullptr) untimed_.insert(of->untimed.begin(), of->untimed.end());
    ++done_;
    if (settings_.progress) settings_.progress(done_);
  }

  const std::vector<SweepPoint>& points_;
  const SweepSimulationSettings& settings_;
  const std::vector<PointTask> tasks_;
  HardwareSource hardware_;
  CostSource costs_;
  KnownForms forms_;
  SimulatedSweep& sweep_;  ///< each thread writes the points of its tasks
  Mutex mutex_;
  std::size_t taken_ PIPEWRIGHT_GUARDED_BY(mutex_) = 0;
  std::size_t done_ PIPEWRIGHT_GUARDED_BY(mutex_) = 0;
  std::set<std::string> origins_ PIPEWRIGHT_GUARDED_BY(mutex_);
  std::set<std::string> untimed_ PIPEWRIGHT_GUARDED_BY(mutex_);
  std::exception_ptr failure_ PIPEWRIGHT_GUARDED_BY(mutex_);
};

SimulatedSweep unsimulated(const Value& document, const std::vector<SweepPoint>& points) {
  SimulatedSweep sweep;
  if (const Value* name = document.find("name")) sweep.name = name->text;
  sweep.keys = varied_keys(points);
  const std::vector<std::string> titles = run_titles(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    SimulatedPoint& point = sweep.points.emplace_back();
    point.title = titles[i];
    point.candidate = candidate_of(points[i]);
    for (const std::string& key : sweep.keys) point.values.push_back(value_of(points[i], key));
  }
  return sweep;
}

}  // namespace

SimulatedSweep unsimulated_sweep(const Value& document) {
  return unsimulated(document, points_of(document, kSimulates));
}

SimulatedSweep simulate_sweep(const Value& document, const SweepSimulationSettings& settings) {
  const std::vector<SweepPoint> points = points_of(document, kSimulates);
  SimulatedSweep sweep = unsimulated(document, points);
  Simulator(points, settings, sweep).run();
  return sweep;
}

}  // namespace pipewright
