/// Measuring a model layer by layer, as the executor would run it: `pipewright profile`.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>

#include "core/cost/profile.h"
#include "core/experiment/experiment.h"

namespace pipewright {

struct ProfileSettings {
  at::Device device = at::kCPU;  ///< meta: bytes and operations only, without memory for them
  int repetitions = 0;           ///< of each layer after a warm-up; 0 = as `seconds` allow, 3 to 50
  double seconds = 20;           ///< about so long for all layers
  std::function<void(std::size_t layer)> on_layer;  ///< begins
};

/// With the experiment's loss, optimizer, precision and threads, on made-up samples of the size of
/// its first micro-batch, texts at their longest: medians of times; memory as LibTorch's allocator
/// counts it, or on the meta device what the operators' tensors would take, without what kernels
/// need for themselves. Layers are made and measured one after another, so the device holds one
/// layer at a time; each is given what the layers before it make. The experiment is left as it is.
/// Throws Error{Experiment} for what the layers refuse.
Profile measure(const Experiment& experiment, const ProfileSettings& settings);

/// The host name, as profiles record it.
std::string machine_name();

/// As measure() would describe it: everything of the profile but what is measured.
Profile described(const Experiment& experiment, at::Device device);
/// Why the profile is not of this experiment on that device, as the end of a sentence ("it is of
/// micro-batches of 8 samples, this experiment has 16"); "" if it is.
std::string misfit(const Profile& profile, const Experiment& experiment, at::Device device);

}  // namespace pipewright
