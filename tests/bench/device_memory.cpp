// SPDX-License-Identifier: Apache-2.0
// The peak memory of every stage on a device: what a profile predicts, against what LibTorch's
// allocator counts while the stage does its part of the schedule.
#include "core/measuring/measured_balance.h"
#include "core/measuring/profiling.h"
#include "tests/bench/device_bench.h"
#include "tests/unit/measuring/memory_trial.h"

namespace pipewright::bench {
namespace {

std::vector<std::pair<std::string, std::string>> peaks_of(const DeviceBench& bench,
                                                          const Experiment& e) {
  const Profile profile = measure(e, {.device = bench.device, .repetitions = 1});
  std::vector<double> predicted, measured;
  for (const StageMemory& stage :
       stage_memories(e, profile, e.pipeline.stages).of_cut(e.layout.balance))
    predicted.push_back(static_cast<double>(stage.total()));
  for (const std::int64_t peak : measure_stage_peaks(e, 2 * e.pipeline.stages, bench.device))
    measured.push_back(static_cast<double>(peak));
  std::vector<double> errors;
  for (std::size_t stage = 0; stage < predicted.size(); ++stage)
    errors.push_back(100 * (predicted[stage] / measured[stage] - 1));
  return {{"predicted_bytes", json_numbers(predicted)},
          {"measured_bytes", json_numbers(measured)},
          {"error_percent", json_numbers(errors)}};
}

}  // namespace

void measure_memory(const DeviceBench& bench) {
  for (const DeviceModel& model : device_models(bench))
    for (const std::string& precision : device_precisions(bench))
      for (const char* scheme : {"{name: gpipe}", "{name: spectrain, version: 1}"})
        report("memory",
               {{"model", json_text(model.name)},
                {"precision", json_text(precision)},
                {"scheme", json_text(scheme)},
                {"batch", std::to_string(model.batch)}},
               [&] { return peaks_of(bench, device_experiment(bench, model, scheme, precision)); });
}

}  // namespace pipewright::bench
