// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/cuda_kernels.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "core/codecs/loops/sort_quantization_kernels.h"
#include "core/system/module_file.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

struct Kernels {
  decltype(&pipewright_sort_quantization_workspace) workspace = nullptr;
  decltype(&pipewright_sort_quantization_encode) encode = nullptr;
  decltype(&pipewright_sort_quantization_decode) decode = nullptr;
};

Kernels load() {
  Kernels kernels;
  const auto file = module_file("libpipewright_cuda.so");
  void* const from = file.empty() ? nullptr : ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) return kernels;
  const auto find = [from]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(from, name));
  };
  find(kernels.workspace, "pipewright_sort_quantization_workspace");
  find(kernels.encode, "pipewright_sort_quantization_encode");
  find(kernels.decode, "pipewright_sort_quantization_decode");
  return kernels;
}

const Kernels& kernels() {
  static const Kernels loaded = load();
  return loaded;
}

bool can(const SortQuantization& settings, const at::Tensor& x) {
  return x.is_cuda() && x.numel() > 0 && settings.split <= kPipewrightMostSplit &&
         kernels().workspace != nullptr && kernels().encode != nullptr &&
         kernels().decode != nullptr;
}

PipewrightSortQuantization plain(const SortQuantization& settings, const at::Tensor& x) {
  return {x.numel(), settings.bits, settings.split, settings.container ? 1 : 0, x.get_device()};
}

void* current_stream_of(const at::Tensor& x) {
  return c10::impl::VirtualGuardImpl(x.device().type()).getStream(x.device()).native_handle();
}

}  // namespace

bool encode_by_kernels(const SortQuantization& wanted, const at::Tensor& x,
                       const at::Tensor& payload) {
  const SortQuantization settings = wanted.for_values(x.numel());
  if (!can(settings, x) || settings.samples()) return false;  // they know no samples
  const c10::DeviceGuard on_its_device(x.device());
  const PipewrightSortQuantization same = plain(settings, x);
  const at::Tensor workspace = at::empty({kernels().workspace(&same)}, payload.options());
  return kernels().encode(&same, x.const_data_ptr<float>(),
                          payload.mutable_data_ptr<std::uint8_t>(), workspace.mutable_data_ptr(),
                          current_stream_of(x)) == 0;
}

bool decode_by_kernels(const SortQuantization& wanted, const at::Tensor& payload,
                       const at::Tensor& x) {
  const SortQuantization settings = wanted.for_values(x.numel());
  if (!can(settings, x)) return false;
  const c10::DeviceGuard on_its_device(x.device());
  const PipewrightSortQuantization same = plain(settings, x);
  return kernels().decode(&same, payload.const_data_ptr<std::uint8_t>(),
                          x.mutable_data_ptr<float>(), current_stream_of(x)) == 0;
}

}  // namespace pipewright
