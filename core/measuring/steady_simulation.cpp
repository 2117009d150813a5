// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/steady_simulation.h"

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/nn/precision.h"
#include "core/schedule/schedule_size.h"
#include "core/simulation/simulate.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

/// The fewest mini-batches whose middle half does not contain the last one.
constexpr int kFewestMiniBatches = 6;

/// A first number of mini-batches: four times the micro-batches that fill the pipeline.
int first_try(const Experiment& experiment) {
  const int stages = experiment.pipeline.stages, microbatches = experiment.pipeline.microbatches;
  return std::clamp((4 * stages + microbatches - 1) / microbatches, kFewestMiniBatches,
                    steady_minibatches(experiment));
}

/// Bytes of each action that is written to a file: measured as kBytesOfProved 1715 to 1939, to
/// which the proof that a simulation keeps has added 74 to 97.
constexpr double kBytesOfWritten = 2050;

/// Forwards and backwards of a mini-batch, the fewest actions that it has.
double passes(const Experiment& experiment) {
  const auto& p = experiment.pipeline;
  return 2.0 * p.stages * p.replicas * p.passes();
}

double actions_of(const Experiment& experiment, int minibatches) {
  double actions = 0;
  for (const auto& worker : experiment.schedule(minibatches).workers)
    actions += static_cast<double>(worker.size());
  return actions;
}

/// Actions of so many mini-batches, from those of one and of two.
double expected_actions(const Experiment& experiment, int minibatches) {
  const double one = actions_of(experiment, 1),
               two = actions_of(experiment, std::min(2, minibatches));
  return one + (two - one) * (minibatches - 1);
}

double bytes_of(double actions, bool written) {
  return actions * (written ? kBytesOfWritten : double{kBytesOfProved});
}

/// Throws Error{Data}, naming actions and bytes, if simulating so many mini-batches takes more
/// memory than this process can get. `written`: every action goes into a file, as with --json and
/// --trace.
void check_simulation_size(const Experiment& experiment, int minibatches, bool written) {
  constexpr double kMostOfAPass = 4;  // actions: halves of a backward, recomputations, updates
  constexpr double kAlwaysThere = 1 << 26;  // bytes; fewer always fit, so no limits are read
  const double most = kMostOfAPass * passes(experiment) * minibatches;
  if (bytes_of(most, written) < kAlwaysThere) return;
  const PipelineShape shape = experiment.shape(minibatches);
  check_minibatch_numbers(shape, minibatches);
  const MemoryLimit limit = memory_limit();
  if (bytes_of(most, written) <= limit.bytes) return;
  const double actions = expected_actions(experiment, minibatches);
  const double bytes = bytes_of(actions, written);
  if (bytes <= limit.bytes) return;
  throw Error(ErrorKind::Data,
              concat("simulating ", counted(minibatches, "mini-batch"), " of ",
                     counted(experiment.pipeline.microbatches, "micro-batch"), " takes about ",
                     bytes_text(bytes), " for ", count_text(actions), " actions",
                     written ? ", which --json and --trace write" : "",
                     limit.text.empty() ? std::string() : "; " + limit.text,
                     "; choose fewer with --minibatches"));
}

}  // namespace

std::vector<std::int64_t> tables_in_costs(std::vector<std::int64_t> tables, const Experiment& e,
                                          const std::vector<StageCost>& costs) {
  const std::vector<std::vector<LayerPtr>> layers = e.stage_layers_and_heads();
  for (std::size_t stage = 0; stage < tables.size(); ++stage) {
    const double own = elements_of(parameter_shapes(layers[stage])) *
                       static_cast<double>(c10::elementSize(e.train.precision.weights));
    const double scale = own > 0 ? static_cast<double>(costs[stage].parameter_bytes) / own : 1;
    tables[stage] = std::llround(scale * static_cast<double>(tables[stage]));
  }
  return tables;
}

int steady_minibatches(const Experiment& experiment) {
  return std::max(8, 4 * experiment.pipeline.stages);
}

int shown_minibatches(const Experiment& experiment) {
  constexpr double kMostActions = 4e6;  // of forwards and backwards
  const auto within = static_cast<int>(std::max(1.0, kMostActions / passes(experiment)));
  return std::clamp(within, first_try(experiment), steady_minibatches(experiment));
}

SteadyFigures SteadySimulation::figures() const {
  SteadyFigures result{.seconds = simulation.seconds_per_minibatch()};
  result.samples_per_second =
      result.seconds > 0 ? static_cast<double>(samples) / result.seconds : 0;
  double busy = 0;
  for (const WorkerReport& worker : simulation.workers)
    busy += worker.computing + worker.communicating;
  const double time = result.seconds * minibatches * static_cast<double>(simulation.workers.size());
  result.bubble = time > 0 ? std::max(0.0, 1 - busy / time) : 0;
  for (const LinkReport& link : simulation.links) result.bytes += link.traffic.bytes;
  result.bytes /= std::max(1, minibatches);
  return result;
}

bool is_steady(const Simulation& simulation) {
  constexpr double kSame = 1e-6;
  const std::vector<double>& ends = simulation.minibatch_ends;
  const std::size_t first = ends.size() / 4, last = 3 * ends.size() / 4;
  const std::size_t middle = (first + last) / 2;
  if (ends.size() < as_size(kFewestMiniBatches)) return false;
  const auto pace = [&](std::size_t from, std::size_t to) {
    return (ends[to] - ends[from]) / static_cast<double>(to - from);
  };
  const bool grown = std::ranges::all_of(
      simulation.workers, [&](const WorkerReport& worker) { return worker.peak_at <= ends[last]; });
  const double before = pace(first, middle), behind = pace(middle, last);
  const auto same = [&](double a, double b) {
    return std::abs(a - b) <= kSame * std::max(before, behind);
  };
  // A pace that changes from one mini-batch to the next may have equal means by chance.
  for (std::size_t i = 0; i + first < middle; ++i)
    if (!same(pace(middle - i - 1, middle - i), pace(last - i - 1, last - i))) return false;
  // A worker that runs ahead of the others holds more and more until it cannot go on.
  const std::size_t half = middle - first;
  const auto repeats = [&](const std::vector<Span>& spans) {
    const std::size_t each = spans.size() / ends.size();  // actions of a mini-batch
    const double lag = behind * static_cast<double>(half);
    for (std::size_t i = (last - 2 * half) * each; i < (last - half) * each; ++i)
      if (!same(spans[i + half * each].begin - spans[i].begin, lag)) return false;
    return true;
  };
  return grown && same(before, behind) && std::ranges::all_of(simulation.spans, repeats);
}

SteadySimulator::SteadySimulator(Experiment experiment, CostSource& costs, Proof proof)
    : experiment_(std::move(experiment)), settled_(experiment_), costs_(costs), proof_(proof) {}

SteadySimulation SteadySimulator::on(const Hardware& hardware, const SteadySettings& settings) {
  check_devices(hardware, as_size(workers()));
  std::vector<std::string> untimed;
  const SourcedCosts costs = costs_on(hardware, untimed);
  const int given = settings.minibatches;
  const int most = given > 0 ? given : shown_minibatches(experiment_);
  for (int count = given > 0 ? given : first_try(experiment_);; count = std::min(2 * count, most)) {
    check_simulation_size(settled_, count, settings.written);
    const Held& schedule = held(count);
    SteadySimulation result{
        .simulation = simulate(
            schedule.proved, costs.stages, hardware,
            {.memory_over_time = settings.memory_over_time,
             .transfers = settings.transfers,
             .optimizer_state = schedule.optimizer_state,
             .optimizer_tables = tables_in_costs(schedule.optimizer_tables, settled_, costs.stages),
             .fixed = settled_.fixed_bytes()}),
        .minibatches = count,
        .samples = costs.minibatch.value_or(experiment_.loader.batch_size),
        .costs_from = costs.from,
        .untimed = untimed,
        .costs = costs.stages};
    result.is_steady = is_steady(result.simulation);
    if (result.is_steady || count == most) return result;
  }
}

SourcedCosts SteadySimulator::costs_on(const Hardware& hardware,
                                       std::vector<std::string>& untimed) {
  // Other rates and speeds may cut it elsewhere.
  const std::pair cut_for(hardware.rates, hardware.mean_time_factor());
  const bool cuts_anew = cut_for_ != cut_for;
  SourcedCosts costs = costs_.of(cuts_anew ? experiment_ : settled_, hardware);
  cut_for_ = cut_for;
  if (costs.layout.balance != settled_.layout.balance) {
    settled_ = experiment_.with(costs.layout);
    messages_.clear();
    schedules_.clear();
  }
  if (messages_.empty()) messages_ = edge_messages(settled_);
  untimed = account_for_codecs(costs.stages, settled_, messages_, hardware,
                               costs_.is_table() ? MessageSizes::OfCosts : MessageSizes::OfModel);
  return costs;
}

const SteadySimulator::Held& SteadySimulator::held(int minibatches) {
  const auto known = schedules_.find(minibatches);
  if (known != schedules_.end()) return known->second;
  Held made{.proved = proof_(settled_.schedule(minibatches))};
  const Holdings held = settled_.holdings(made.proved.schedule);
  made.optimizer_state = held.slots();
  made.optimizer_tables = held.table_bytes(settled_.stage_layers_and_heads());
  return schedules_.emplace(minibatches, std::move(made)).first->second;
}

}  // namespace pipewright
