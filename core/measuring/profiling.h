// SPDX-License-Identifier: Apache-2.0
/// Measures a model layer by layer, as the executor would run it, for `pipewright profile`.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>

#include "core/cost/profile.h"
#include "core/experiment/experiment.h"

namespace pipewright {

struct ProfileSettings {
  at::Device device = at::kCPU;  ///< meta: count bytes and operations, allocate nothing
  int repetitions = 0;           ///< per layer after a warm-up; 0: 3 to 50, within `seconds`
  double seconds = 20;           ///< approximate time for all layers together
  std::function<void(std::size_t layer)> on_layer;  ///< called before each
  std::function<void(const std::string&)> tell;     ///< warns of times that scatter; may be empty
};

/// Measures every layer with the experiment's loss, optimizer, precision and threads, on a
/// synthetic batch of the size of its first micro-batch, texts at their full length. Times are
/// medians. Memory is that of LibTorch's allocator, or on the meta device that of the operators'
/// tensors without workspaces of kernels. Layers are created and measured one after another, each
/// on the outputs of the layers before it, so the device holds one layer at a time. Equal layers
/// have the medians over all their repetitions. The experiment
/// is not changed. Throws Error{Experiment} if a layer refuses its inputs.
Profile measure(const Experiment& experiment, const ProfileSettings& settings);

/// The profile that measure() would return, without its measurements.
Profile described(const Experiment& experiment, at::Device device);
/// Why the profile is not of this experiment on that device, as the end of a sentence ("it is of
/// micro-batches of 8 samples, this experiment has 16"); "" if it is.
std::string misfit(const Profile& profile, const Experiment& experiment, at::Device device);

}  // namespace pipewright
