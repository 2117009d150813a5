// SPDX-License-Identifier: Apache-2.0
/// The part of NCCL that moves memory between devices of several processes. LibTorch's CUDA half
/// brings the library, so it is found at run time, and compiling needs none of its files.
#pragma once

#include <array>
#include <cstddef>

namespace pipewright {

/// Binary compatible with ncclUniqueId, ncclComm_t and cudaStream_t of NCCL 2.
struct NcclId {
  std::array<char, 128> bytes{};
};
using NcclCommunicator = void*;
using NcclStream = void*;

/// NCCL's functions, and one of CUDA's. All but error_text() return 0 for success.
struct NcclApi {
  static constexpr int kByte = 1;  ///< ncclUint8

  int (*get_unique_id)(NcclId*);
  int (*comm_init_rank)(NcclCommunicator*, int size, NcclId, int rank);
  int (*comm_get_async_error)(NcclCommunicator, int*);
  int (*comm_destroy)(NcclCommunicator);
  int (*group_start)();
  int (*group_end)();
  int (*send)(const void*, std::size_t, int type, int peer, NcclCommunicator, NcclStream);
  int (*receive)(void*, std::size_t, int type, int peer, NcclCommunicator, NcclStream);
  const char* (*error_text)(int);
  /// The PCI bus id of a device as text (cudaDeviceGetPCIBusId).
  int (*bus_id)(char* text, int length, int device);
};

/// NCCL, or null where it is missing or incomplete. Thread-safe.
const NcclApi* find_nccl();

}  // namespace pipewright
