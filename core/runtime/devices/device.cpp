// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/device.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error_at.h"
#include "core/base/wording.h"
#include "core/nn/numerics.h"
#include "core/runtime/build_info.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Makes kernels, until train.numerics says else, give the same bits whenever they get the same,
/// and float32 be float32: without this cuDNN rounds the factors of convolutions to TF32's ten
/// bits, and adds in any order. An operator that can only add in any order fails.
void compute_as_written() {
  compute_with({}, /*on_gpu=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

/// Loads LibTorch's CUDA half into the process. Returns why that failed, "" if it did not.
std::string load_cuda() {
  compute_as_written();
  const std::filesystem::path folder = loaded_torch_root() / "lib";
  if (dlopen((folder / "libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) {
    // LibTorch would load it for the first factorization, and fail if two threads ask at once.
    dlopen((folder / "libtorch_cuda_linalg.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
    return {};
  }
  const char* said = dlerror();
  return said == nullptr ? "the system does not say why" : said;
}

}  // namespace

const std::string& cuda_load_error() {
  static const std::string error = load_cuda();
  return error;
}

int cuda_device_count() {
  if (!cuda_load_error().empty() || !at::globalContext().hasCUDA()) return 0;
  return static_cast<int>(
      at::globalContext().getAcceleratorHooksInterface(at::kCUDA).deviceCount());
}

std::vector<at::Device> resolve_devices(const std::vector<std::string>& names,
                                        const std::string& where) {
  std::vector<at::Device> devices;
  for (std::size_t worker = 0; worker < names.size(); ++worker) {
    const std::string& name = names[worker];
    if (name == "cpu") {
      devices.emplace_back(at::kCPU);
      continue;
    }
    const int count = cuda_device_count();
    const int wanted = name == "cuda" ? -1 : std::stoi(name.substr(5));
    if (count == 0 || wanted >= count)
      throw experiment_error(where, "pipeline.device is '", name, "'; this machine has ",
                             counted(count, "CUDA device"),
                             " that LibTorch can use; `pipewright doctor` says why");
    devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(
                                        wanted < 0 ? static_cast<int>(worker) % count : wanted));
  }
  return devices;
}

}  // namespace pipewright
