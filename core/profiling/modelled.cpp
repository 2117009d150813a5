// SPDX-License-Identifier: Apache-2.0
#include "core/profiling/modelled.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/registry.h"
#include "core/base/text.h"
#include "core/codecs/codec.h"
#include "core/cost/roofline.h"
#include "core/experiment/identity.h"
#include "core/profiling/codec_costs.h"
#include "core/profiling/measured_balance.h"
#include "core/profiling/profiling.h"
#include "core/profiling/weight_work.h"
#include "core/simulation/simulate.h"

namespace pipewright {
namespace {

constexpr double kHour = 3600;

/// Modelled numbers of one experiment in its steady state.
struct Modelled {
  double seconds_per_minibatch = 0;
  double samples_per_second = 0;
  double bubble = 0;              ///< idle fraction of all workers' time
  double required = 0;            ///< bytes/s over all links together at that pace
  double link = 0;                ///< bytes/s of the slowest link used; 0: none used, or unlimited
  std::int64_t state = 0;         ///< bytes: weights of all versions, gradients, optimizer
  std::int64_t worker_state = 0;  ///< bytes of the worker that has most
  std::int64_t memory = 0, worker_memory = 0;  ///< as above, for all memory at each worker's peak
  std::int64_t parameters = 0;                 ///< elements of the model's parameters
};

/// Models the runs of one table. It caches profiles, because runs often share their model and
/// micro-batch size.
class Modeller {
 public:
  explicit Modeller(const Hardware& hardware) : hardware_(hardware) {}

  const Modelled& of(const Value& config) {
    const std::string key = digest_without_seed(config);
    const auto known = runs_.find(key);
    if (known != runs_.end()) return known->second;
    return runs_.emplace(key, modelled(read_experiment(config))).first->second;
  }

  Modelled modelled(Experiment experiment);

 private:
  /// Operations and bytes of the experiment's layers, without times.
  const Profile& counts(const Experiment& experiment);

  const Hardware& hardware_;
  std::map<std::string, Modelled> runs_;
  std::map<std::string, Profile> profiles_;
};

const Profile& Modeller::counts(const Experiment& experiment) {
  const Profile wanted = described(experiment, at::kMeta);
  const std::string key = concat(wanted.digest, " ", wanted.samples, " ", wanted.precision);
  const auto known = profiles_.find(key);
  if (known != profiles_.end()) return known->second;
  return profiles_.emplace(key, measure(experiment, {.device = at::kMeta})).first->second;
}

Modelled Modeller::modelled(Experiment experiment) {
  const Profile costs =
      with_modelled_times(counts(experiment), hardware_.rates, weight_moves(experiment));
  cut_by(experiment, costs);
  const Schedule schedule = experiment.schedule(steady_minibatches(experiment));
  std::vector<StageCost> stages = stage_costs(costs, experiment.balance);
  account_for_codecs(stages, experiment, hardware_);
  const Simulation simulation =
      simulate(schedule, stages, hardware_,
               {.optimizer_state = static_cast<double>(optimizer_slots(experiment, schedule))});
  Modelled result{.seconds_per_minibatch = simulation.seconds_per_minibatch(),
                  .bubble = simulation.bubble};
  result.samples_per_second =
      static_cast<double>(experiment.loader.batch_size) / result.seconds_per_minibatch;
  for (const WorkerReport& worker : simulation.workers) {
    result.state += worker.most_state;
    result.worker_state = std::max(result.worker_state, worker.most_state);
    result.memory += worker.peak.total();
    result.worker_memory = std::max(result.worker_memory, worker.peak.total());
  }
  for (const LayerCost& layer : costs.layers) result.parameters += layer.parameters;
  for (const LinkReport& link : simulation.links) {
    result.required += static_cast<double>(link.traffic.bytes) / simulation.makespan;
    const double bandwidth = hardware_.speed_of(link.from, link.to).bandwidth;
    if (std::isfinite(bandwidth) && (result.link == 0 || bandwidth < result.link))
      result.link = bandwidth;
  }
  return result;
}

/// Samples that an epoch trains on, from the last row of epochs.csv.
double samples_per_epoch(const RunRecord& run) {
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(run.columns, name) - run.columns.begin());
  };
  const std::size_t seconds = column("seconds"), rate = column("samples_per_second");
  if (run.epochs.empty() || std::max(seconds, rate) >= run.columns.size()) return 0;
  return std::round(run.epochs.back()[seconds] * run.epochs.back()[rate]);
}

}  // namespace

Profile counted_profile(const Experiment& experiment, const Hardware& hardware) {
  return with_modelled_times(measure(experiment, {.device = at::kMeta}), hardware.rates,
                             weight_moves(experiment));
}

std::string counted_from(const Hardware& hardware) {
  return concat("operations and bytes of the model at the rates of ", hardware.name);
}

int steady_minibatches(const Experiment& experiment) {
  return std::max(8, 4 * experiment.pipeline.stages);
}

void add_modelled(std::vector<RunRecord>& runs, const Hardware& hardware) {
  if (!hardware.rates.known())
    throw Error(
        ErrorKind::Experiment,
        concat("the hardware '", hardware.name,
               "' does not say devices.teraflops and devices.memory_gb_per_s, from which times "
               "are modelled"));
  Modeller modeller(hardware);
  double first = 0;
  for (RunRecord& run : runs) {
    const Modelled& of = modeller.of(run.config.of_any_seed());
    if (first == 0) first = of.samples_per_second;
    const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
    run.modelled = {{"modelled_samples_per_second", of.samples_per_second},
                    {"modelled_speedup", of.samples_per_second / first},
                    {"modelled_bubble", of.bubble},
                    {"modelled_required_mib_per_s", of.required / kMiB},
                    {"modelled_link_mib_per_s", of.link / kMiB},
                    {"modelled_state_gib", gib(of.state)},
                    {"modelled_worker_state_gib", gib(of.worker_state)},
                    {"modelled_activation_gib", gib(of.memory - of.state)},
                    {"modelled_memory_gib", gib(of.memory)},
                    {"modelled_worker_memory_gib", gib(of.worker_memory)},
                    {"modelled_parameters", static_cast<double>(of.parameters)}};
    if (const double samples = samples_per_epoch(run); samples > 0) {
      run.modelled_epoch_hours = samples / of.samples_per_second / kHour;
      run.modelled.emplace_back("modelled_hours",
                                static_cast<double>(run.epochs.size()) * run.modelled_epoch_hours);
    }
  }
}

}  // namespace pipewright
