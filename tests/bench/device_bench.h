// SPDX-License-Identifier: Apache-2.0
/// What device_bench measures. Each function prints one line of JSON for each case as soon as it is
/// measured, with the figures of every round, so that a run that is cut short loses nothing.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"

namespace pipewright::bench {

struct DeviceBench {
  at::Device device = at::kCPU;
  bool small = false;  ///< sizes that a CPU manages in seconds
  int rounds = 5;
  bool paced = false;     ///< a line of standard input begins each round, and one of output ends it
  std::string model;      ///< only this one, if given
  std::string precision;  ///< only this one, if given
  std::vector<std::string> schemes;     ///< only these, if given
  std::string numerics = "repeatable";  ///< train.numerics
};

/// A model that is measured, with its mini-batch.
struct DeviceModel {
  std::string name;
  std::string yaml;
  std::int64_t batch;
  int steps;  ///< of a block that is timed
};
/// VGG-16, ResNet-50 and gpt, in this order, those that are asked for.
std::vector<DeviceModel> device_models(const DeviceBench& bench);
std::vector<std::string> device_precisions(const DeviceBench& bench);

/// The experiment with that scheme (YAML) in four stages, SGD with momentum. From here on LibTorch
/// computes with its numerics.
Experiment device_experiment(const DeviceBench& bench, const DeviceModel& model,
                             const std::string& scheme, const std::string& precision);

/// Seconds that the work takes by the clock on the wall, until the device has done it.
double seconds(at::Device device, const std::function<void()>& work);

/// Prints {"kind": …, then `fields`}; prints an error instead if `measured` throws one, and lets
/// the program end with 1.
void report(const std::string& kind, std::vector<std::pair<std::string, std::string>> fields,
            const std::function<std::vector<std::pair<std::string, std::string>>()>& measured);
/// JSON of a text, and of numbers.
std::string json_text(const std::string& text);
std::string json_numbers(const std::vector<double>& numbers);
/// The median, the lowest and the highest ratio of the same rounds, which a slow drift of the
/// machine leaves alone.
std::string json_ratios(const std::vector<double>& above, const std::vector<double>& below);

/// A training step of schemes, in serial, with one stream and with several, against a plain step;
/// and before that whether the last scheme's weights are the same bits in each of these, and in
/// serial again.
void measure_steps(const DeviceBench& bench);
/// Sort Quantization against a copy on the device.
void measure_codecs(const DeviceBench& bench);
/// The peak memory of every stage, predicted and measured.
void measure_memory(const DeviceBench& bench);

}  // namespace pipewright::bench
