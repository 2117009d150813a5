// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/nccl.h"

#include <dlfcn.h>

#include <optional>

namespace pipewright {
namespace {

std::optional<NcclApi> load() {
  void* library = ::dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) return {};
  NcclApi api{};
  bool complete = true;
  auto take = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    complete &= function != nullptr;
  };
  take(api.get_unique_id, "ncclGetUniqueId");
  take(api.comm_init_rank, "ncclCommInitRank");
  take(api.comm_get_async_error, "ncclCommGetAsyncError");
  take(api.comm_destroy, "ncclCommDestroy");
  take(api.group_start, "ncclGroupStart");
  take(api.group_end, "ncclGroupEnd");
  take(api.send, "ncclSend");
  take(api.receive, "ncclRecv");
  take(api.error_text, "ncclGetErrorString");
  library = RTLD_DEFAULT;  // CUDA is loaded already if a CUDA device is in use
  take(api.bus_id, "cudaDeviceGetPCIBusId");
  if (!complete) return {};
  return api;
}

}  // namespace

const NcclApi* find_nccl() {
  static const std::optional<NcclApi> api = load();
  return api ? &*api : nullptr;
}

}  // namespace pipewright
