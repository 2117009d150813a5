// SPDX-License-Identifier: Apache-2.0
#include "core/training/drained_probes.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "core/base/error.h"
#include "core/probes/whole_model.h"
#include "core/stage/torch.h"
#include "core/system/foreign_error.h"

namespace pipewright {
namespace {

constexpr std::int64_t kTrialSamples = 2;

bool is_due(const Probe& probe, std::int64_t first, std::int64_t end) {
  return probe.drained_samples() > 0 && end / probe.every() > first / probe.every();
}

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
    Batch batch = plan.experiment->dataset->batch(
        Split::Train, std::span(plan.train).first(static_cast<std::size_t>(count)), nullptr);
    for (const at::Tensor& input : batch.x) inputs_.push_back(moved(input));
    targets_ = batch.y.to(options_.device());
  }

  DrainedModel model() const {
    const Experiment& e = *plan_.experiment;
    return {.layers = e.layers,
            .layers_per_stage = e.balance,
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

}  // namespace

bool has_drained_probes(const Experiment& experiment) {
  return std::ranges::any_of(
      experiment.probes, [](const NamedProbe& each) { return each.probe->drained_samples() > 0; });
}

bool drained_probe_is_due(const Experiment& experiment, std::int64_t first, std::int64_t end) {
  return std::ranges::any_of(
      experiment.probes, [&](const NamedProbe& each) { return is_due(*each.probe, first, end); });
}

std::vector<ProbeRow> measured_where_drained(const Plan& plan, const TensorFile& weights,
                                             const TensorFile& preconditioner, std::int64_t first,
                                             std::int64_t end, std::vector<Probes::Cost>& costs) {
  using Clock = std::chrono::steady_clock;
  at::set_num_threads(plan.experiment->pipeline.threads);
  const std::vector<NamedProbe>& probes = plan.experiment->probes;
  costs.resize(probes.size());
  std::vector<ProbeRow> rows;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (!is_due(*probes[i].probe, first, end)) continue;
    const Clock::time_point begin = Clock::now();
    const Instant instant(plan, weights, preconditioner, probes[i].probe->drained_samples());
    probes[i].probe->drained(
        instant.model(), [&](int stage, std::string_view quantity, double value) {
          rows.push_back({end - 1, stage, static_cast<int>(i), std::string(quantity), value});
        });
    costs[i].seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    ++costs[i].measurements;
  }
  return rows;
}

void try_drained_probes(const Plan& plan, const TensorFile& weights) {
  const std::vector<NamedProbe>& probes = plan.experiment->probes;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (probes[i].probe->drained_samples() == 0) continue;
    try {
      probes[i].probe->try_on(Instant(plan, weights, {}, kTrialSamples).model());
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorKind::Experiment,
                  concat("probes[", i, "] ", probes[i].name,
                         " needs second derivatives, which a layer of this model does not have: ",
                         first_line(error)),
                  plan.experiment->where("probes"));
    }
  }
}

}  // namespace pipewright
