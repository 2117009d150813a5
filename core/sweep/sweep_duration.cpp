// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_duration.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/measuring/profiling.h"

namespace pipewright {
namespace {

constexpr double kTooLarge =
    1e10;  // operations of a forward: all repetitions would take many seconds
constexpr double kSecondsEach = 0.5, kSecondsInAll = 5;  // of timing layers
constexpr double kStart = 0.3;    // s, of a run: its process, files and the first touch of memory
constexpr double kBackwards = 2;  // operations of a backward, in those of its forward

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double sum(const Profile& profile, const std::function<double(const LayerCost&)>& cost) {
  double all = 0;
  for (const LayerCost& layer : profile.layers) all += cost(layer);
  return all;
}

/// How often a run does what a profile measures.
struct Times {
  double forwards = 0, backwards = 0, updates = 0;
};

Times times_of(const Plan& plan) {
  const Experiment& e = *plan.experiment;
  const double minibatches = static_cast<double>(plan.drains.minibatches);
  const double samples =
      static_cast<double>(e.loader.batch_size) / (e.pipeline.microbatches * e.pipeline.replicas);
  const std::int64_t each = plan.drains.evaluate_every > 0
                                ? plan.drains.evaluate_every
                                : std::int64_t{plan.minibatches} * e.train.evaluate_every;
  const auto evaluations =
      static_cast<double>(std::max<std::int64_t>(1, plan.drains.minibatches / each));
  Times times;
  times.backwards = minibatches * e.pipeline.microbatches * e.pipeline.replicas;
  times.updates = minibatches * e.pipeline.replicas;
  times.forwards = times.backwards * (e.pipeline.recompute == Recomputation::Never ? 1 : 2) +
                   evaluations * static_cast<double>(plan.test.size()) / samples;
  return times;
}

}  // namespace

const SweepDuration::Measured& SweepDuration::measured(const Experiment& experiment) {
  const auto fits = [&](const Measured& known) {
    const at::Device device = known.profile.timed ? at::kCPU : at::kMeta;
    return misfit(known.profile, experiment, device).empty();
  };
  if (const auto known = std::ranges::find_if(measured_, fits); known != measured_.end())
    return *known;
  Profile counted = measure(experiment, {.device = at::kMeta});
  const double forward = sum(counted, [](const LayerCost& layer) { return layer.flops; });
  if (forward > kTooLarge || spent_ > kSecondsInAll)
    return measured_.emplace_back(Measured{.profile = std::move(counted)});
  const auto began = std::chrono::steady_clock::now();
  const double used = processor_seconds();
  Profile timed = measure(experiment, {.seconds = kSecondsEach});
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  spent_ += took;
  const double share = (processor_seconds() - used) / (took * experiment.pipeline.threads);
  return measured_.emplace_back(
      Measured{.profile = std::move(timed), .share = std::min(1.0, share)});
}

void SweepDuration::add(const Plan& plan, std::size_t runs) {
  const auto on_cpu = [](const at::Device& device) { return device.is_cpu(); };
  if (!std::ranges::all_of(plan.devices, on_cpu)) {
    elsewhere_ = true;
    return;
  }
  const auto& [profile, share] = measured(*plan.experiment);
  const Times times = times_of(plan);
  const auto all = static_cast<double>(runs);
  Work& work = profile.timed ? timed_ : counted_;
  work.seconds += all * (kStart + share * sum(profile, [&](const LayerCost& layer) {
                                    return times.forwards * layer.forward +
                                           times.backwards * layer.backward +
                                           times.updates * (layer.update + layer.prediction);
                                  }));
  work.operations += all * sum(profile, [&](const LayerCost& layer) {
                       return layer.flops * (times.forwards + kBackwards * times.backwards);
                     });
}

std::optional<double> SweepDuration::seconds() const {
  if (elsewhere_ || (counted_.operations > 0 && timed_.operations == 0)) return std::nullopt;
  const double rate = timed_.operations > 0 ? timed_.seconds / timed_.operations : 0;
  return timed_.seconds + counted_.seconds + counted_.operations * rate;
}

}  // namespace pipewright
