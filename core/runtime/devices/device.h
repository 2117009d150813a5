/// Devices by their names in YAML. CUDA is not linked: where LibTorch's folder has its CUDA half,
/// that is loaded when a CUDA device is first asked for, which must be before the process's first
/// backward: LibTorch's autograd counts the devices then, once.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace pipewright {

/// CUDA devices that can be used; 0 without a GPU, driver or CUDA LibTorch. Loads CUDA libraries if
/// there are any.
int cuda_device_count();

/// Why LibTorch's CUDA half is not in this process, in the words of the system's loader; "" when it
/// is. Loads it, as cuda_device_count().
const std::string& cuda_load_error();

/// The device of each worker: "cuda" is worker w on device w mod count. Throws Error{Experiment}
/// at `where` when CUDA is asked for and not there.
std::vector<at::Device> resolve_devices(const std::vector<std::string>& names,
                                        const std::string& where);

}  // namespace pipewright
