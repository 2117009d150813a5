// SPDX-License-Identifier: Apache-2.0
/// Devices by their names in YAML. CUDA is not linked: LibTorch's CUDA half, where its folder has
/// one, is loaded on the first request for a CUDA device. That must come before the process's first
/// backward, when LibTorch's autograd counts the devices once for all.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace pipewright {

/// Number of usable CUDA devices; 0 without a GPU, driver or CUDA LibTorch. Loads LibTorch's CUDA
/// half if there is one.
int cuda_device_count();

/// Why LibTorch's CUDA half could not be loaded, in the words of the system's loader; "" if it was.
/// Loads it on the first call.
const std::string& cuda_load_error();

/// The device of each worker: "cuda" puts worker w on CUDA device w mod count. Throws
/// Error{Experiment} at `where` if a CUDA device is named that does not exist.
std::vector<at::Device> resolve_devices(const std::vector<std::string>& names,
                                        const std::string& where);

}  // namespace pipewright
