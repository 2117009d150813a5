// SPDX-License-Identifier: Apache-2.0
#include "core/training/whole_model_probes.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <span>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/probes/whole_model.h"
#include "core/system/foreign_error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kTrialSamples = 2;

/// Tensors of a model on one device, in the wide format, and samples.
class Instant {
 public:
  Instant(const Plan& plan, const TensorFile& weights, const TensorFile& preconditioner,
          std::int64_t samples)
      : plan_(plan),
        options_(at::TensorOptions(plan.experiment->train.precision.weights)
                     .device(plan.devices.front())) {
    for (const auto& [name, tensor] : weights.tensors) state_.emplace_back(name, moved(tensor));
    for (const auto& [name, tensor] : preconditioner.tensors)
      preconditioner_.emplace_back(name, moved(tensor));
    const auto count = std::min(samples, std::ssize(plan.train));
    Batch batch = plan.dataset->batch(
        Split::Train, std::span(plan.train).first(static_cast<std::size_t>(count)), nullptr);
    for (const at::Tensor& input : batch.x) inputs_.push_back(moved(input));
    targets_ = batch.y.to(options_.device());
  }

  ModelInstant model() const {
    const Experiment& e = *plan_.experiment;
    return {.layers = e.layers,
            .layers_per_stage = e.layout.balance,
            .loss = *e.loss,
            .state = state_,
            .preconditioner = preconditioner_,
            .inputs = inputs_,
            .targets = targets_,
            .seed = e.train.seed};
  }

 private:
  at::Tensor moved(const at::Tensor& tensor) const {
    return tensor.is_floating_point() ? tensor.to(options_) : tensor.to(options_.device());
  }

  const Plan& plan_;
  at::TensorOptions options_;
  NamedTensors state_, preconditioner_;
  Tensors inputs_;
  at::Tensor targets_;
};

/// The most copies of the model that wait for a drained pipeline.
std::int64_t most_copies(const Plan& plan, std::int64_t done) {
  std::int64_t most = 0;
  for (std::int64_t begin = done; begin < plan.drains.minibatches;) {
    const std::int64_t end = plan.drains.next(begin);
    most = std::max(most, std::ssize(measured_minibatches(*plan.experiment, begin, end)));
    begin = end;
  }
  return most;
}

}  // namespace

bool has_whole_model_probes(const Experiment& experiment) {
  return std::ranges::any_of(
      experiment.probes, [](const NamedProbe& each) { return each.probe->whole_samples() > 0; });
}

std::int64_t measurements_between(const Probe& probe, std::int64_t first, std::int64_t end) {
  const auto before = [&](std::int64_t position) {
    return (position + probe.every() - 1) / probe.every();
  };
  return before(end) - before(first);
}

std::vector<std::int64_t> measured_minibatches(const Experiment& experiment, std::int64_t first,
                                               std::int64_t end) {
  std::set<std::int64_t> all;
  for (const NamedProbe& each : experiment.probes) {
    if (each.probe->whole_samples() == 0) continue;
    const std::int64_t every = each.probe->every();
    for (std::int64_t next = (first + every - 1) / every * every; next < end; next += every)
      all.insert(next);
  }
  return {all.begin(), all.end()};
}

std::vector<ProbeRow> measured_whole(const Plan& plan, const TensorFile& weights,
                                     const TensorFile& divisors, std::int64_t minibatch,
                                     std::vector<Probes::Cost>& costs) {
  using Clock = std::chrono::steady_clock;
  at::set_num_threads(plan.experiment->pipeline.threads);
  const std::vector<NamedProbe>& probes = plan.experiment->probes;
  costs.resize(probes.size());
  std::vector<ProbeRow> rows;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const Probe& probe = *probes[i].probe;
    if (probe.whole_samples() == 0 || minibatch % probe.every() != 0) continue;
    const Clock::time_point begin = Clock::now();
    const Instant instant(plan, weights, divisors, probe.whole_samples());
    probe.measure_whole(instant.model(), [&](int stage, std::string_view quantity, double value) {
      if (std::isfinite(value))
        rows.push_back({minibatch, stage, static_cast<int>(i), std::string(quantity), value});
    });
    costs[i].seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    ++costs[i].measurements;
  }
  return rows;
}

WholeModelNeed whole_model_need(const Plan& plan) {
  const Experiment& e = *plan.experiment;
  WholeModelNeed need;
  need.kept.resize(static_cast<std::size_t>(e.pipeline.stages));
  if (!has_whole_model_probes(e)) return need;
  const auto size = static_cast<double>(at::elementSize(e.train.precision.weights));
  const std::optional<LinearRule> rule = e.optimizer->linear();
  const bool divided = rule && rule->preconditioned;
  const auto copies = static_cast<double>(most_copies(plan, 0));
  const auto layers = plan.experiment->stage_layers();
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    const LayerPtr head = plan.head_of(static_cast<int>(stage));
    const double divisors = divided ? elements_of(parameter_shapes(layers[stage], head)) : 0;
    need.kept[stage] = copies * size * (elements_of(state_shapes(layers[stage], head)) + divisors);
  }
  int most = 0;
  for (const NamedProbe& each : e.probes)
    if (each.probe->whole_samples() > 0) most = std::max(most, each.probe->whole_copies(divided));
  need.measuring = most * size * elements_of(parameter_shapes(e.layers));
  return need;
}

std::vector<std::string> announcement(const Plan& plan, std::int64_t done, double bytes) {
  const Experiment& e = *plan.experiment;
  std::vector<std::string> counts, lines;
  for (const NamedProbe& each : e.probes)
    counts.push_back(concat(
        each.name, " ",
        counted(measurements_between(*each.probe, done, plan.drains.minibatches), "mini-batch")));
  if (counts.empty()) return {};
  lines.push_back(concat("probes will measure: ", join(counts, ", ")));
  for (const NamedProbe& each : e.probes) {
    if (each.probe->whole_samples() == 0) continue;
    const std::int64_t copies = most_copies(plan, done);
    lines.push_back(concat("probe ", each.name, ": each measurement takes ",
                           each.probe->effort(e.pipeline.stages), "; the weights of up to ",
                           counted(copies, "mini-batch"), " (",
                           bytes_text(bytes * static_cast<double>(copies)),
                           ") are kept until the pipeline is drained"));
  }
  return lines;
}

void try_whole_model_probes(const Plan& plan, const TensorFile& weights) {
  const std::vector<NamedProbe>& probes = plan.experiment->probes;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (probes[i].probe->whole_samples() == 0) continue;
    try {
      probes[i].probe->try_on(Instant(plan, weights, {}, kTrialSamples).model());
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw experiment_error(
          plan.experiment->where("probes"), "probes[", i, "] ", probes[i].name,
          " needs second derivatives, which a layer of this model does not have: ",
          first_line(error));
    }
  }
}

}  // namespace pipewright
