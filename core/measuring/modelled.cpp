// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/modelled.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/experiment/identity.h"
#include "core/experiment/reading.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/steady_simulation.h"
#include "core/stage/stage.h"

namespace pipewright {
namespace {

constexpr double kHour = 3600;

/// Modelled numbers of one experiment in its steady state.
struct Modelled {
  SteadyFigures figures;
  double link = 0;                ///< bytes/s of the slowest link used; 0: none used, or unlimited
  std::int64_t state = 0;         ///< bytes: weights of all versions, gradients, optimizer
  std::int64_t worker_state = 0;  ///< bytes of the worker that has most
  std::int64_t memory = 0, worker_memory = 0;  ///< as above, for all memory at each worker's peak
  double parameters = 0;                       ///< elements of the model's parameters
  std::string costs_from;                      ///< origin of the times in words

  /// Bytes/s over all links together at that pace.
  double required() const {
    return figures.seconds > 0 ? static_cast<double>(figures.bytes) / figures.seconds : 0;
  }
};

/// Bytes/s of the slowest link that carried something; 0: none did, or they are unlimited.
double slowest_link(const Simulation& simulation, const Hardware& hardware) {
  double slowest = 0;
  for (const LinkReport& link : simulation.links) {
    const double bandwidth = hardware.speed_of(link.from, link.to).bandwidth;
    if (std::isfinite(bandwidth) && (slowest == 0 || bandwidth < slowest)) slowest = bandwidth;
  }
  return slowest;
}

/// Models the runs of one table, each experiment once.
class Modeller {
 public:
  explicit Modeller(const Hardware& hardware) : hardware_(hardware), costs_(CostFiles()) {}

  const Modelled& of(const Value& config) {
    const std::string key = digest_without_seed(config);
    const auto known = runs_.find(key);
    if (known != runs_.end()) return known->second;
    return runs_.emplace(key, modelled(read_experiment(config))).first->second;
  }

 private:
  Modelled modelled(Experiment experiment);

  const Hardware& hardware_;
  CostSource costs_;
  std::map<std::string, Modelled> runs_;
};

Modelled Modeller::modelled(Experiment experiment) {
  Modelled result{.parameters = elements_of(parameter_shapes(experiment.layers))};
  const Hardware hardware = laid_out(hardware_, experiment.shape(1));
  const SteadySimulation steady = SteadySimulator(std::move(experiment), costs_).on(hardware);
  result.figures = steady.figures();
  result.costs_from = steady.costs_from;
  result.link = slowest_link(steady.simulation, hardware);
  for (const WorkerReport& worker : steady.simulation.workers) {
    result.state += worker.most_state;
    result.worker_state = std::max(result.worker_state, worker.most_state);
    result.memory += worker.peak.total();
    result.worker_memory = std::max(result.worker_memory, worker.peak.total());
  }
  return result;
}

/// Samples that each epoch has trained on, from the rows of epochs.csv: of a training of so many
/// steps the last epoch may be a part of one.
std::vector<double> samples_of_epochs(const RunRecord& run) {
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(run.columns, name) - run.columns.begin());
  };
  const std::size_t seconds = column("seconds"), rate = column("samples_per_second");
  std::vector<double> samples;
  if (std::max(seconds, rate) >= run.columns.size()) return samples;
  for (const std::vector<double>& row : run.epochs)
    samples.push_back(std::round(row[seconds] * row[rate]));
  return samples;
}

}  // namespace

std::set<std::string> add_modelled(std::vector<RunRecord>& runs, const Hardware& hardware) {
  if (!hardware.rates.known())
    throw Error(ErrorKind::Experiment,
                concat("the hardware '", hardware.name,
                       "' does not say devices.teraflops and devices.memory_gb_per_s, from which "
                       "times are modelled"));
  Modeller modeller(hardware);
  double first = 0;
  std::set<std::string> origins;
  for (RunRecord& run : runs) {
    const Modelled& modelled = modeller.of(run.config.of_any_seed());
    const double pace = modelled.figures.samples_per_second;
    origins.insert(modelled.costs_from);
    if (first == 0) first = pace;
    const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
    run.modelled = {{"modelled_samples_per_second", pace},
                    {"modelled_speedup", pace / first},
                    {"modelled_bubble", modelled.figures.bubble},
                    {"modelled_required_mib_per_s", modelled.required() / kMiB},
                    {"modelled_link_mib_per_s", modelled.link / kMiB},
                    {"modelled_state_gib", gib(modelled.state)},
                    {"modelled_worker_state_gib", gib(modelled.worker_state)},
                    {"modelled_activation_gib", gib(modelled.memory - modelled.state)},
                    {"modelled_memory_gib", gib(modelled.memory)},
                    {"modelled_worker_memory_gib", gib(modelled.worker_memory)},
                    {"modelled_parameters", modelled.parameters}};
    const std::vector<double> samples = samples_of_epochs(run);
    if (samples.empty() || samples.front() == 0) continue;
    run.modelled_epoch_hours = samples.front() / pace / kHour;
    const double epochs = std::accumulate(samples.begin(), samples.end(), 0.0) / samples.front();
    run.modelled_run_hours = epochs * run.modelled_epoch_hours;
    if (run.done())  // else its training is cut short
      run.modelled.emplace_back("modelled_hours", run.modelled_run_hours);
  }
  return origins;
}

}  // namespace pipewright
