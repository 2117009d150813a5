// SPDX-License-Identifier: Apache-2.0
/// The interface of the module of CUDA kernels (libpipewright_cuda.so). It is plain C, so that the
/// compilers on both sides need not agree. Pointers are device pointers; `stream` is a
/// cudaStream_t. Functions queue work and do not wait. They return CUDA's error code, 0 for none.
#pragma once

#include <cstdint>

extern "C" {

/// The settings of a SortQuantization after for_values(n).
struct PipewrightSortQuantization {
  std::int64_t n;  ///< at least 1
  int bits;
  int split;      ///< at most kPipewrightMostSplit
  int container;  ///< 0 or 1
  int device;     ///< index of the device of all pointers
};

/// Bytes of workspace that encoding needs, 8-byte aligned.
std::int64_t pipewright_sort_quantization_workspace(const PipewrightSortQuantization* settings);
int pipewright_sort_quantization_encode(const PipewrightSortQuantization* settings, const float* x,
                                        unsigned char* payload, void* workspace, void* stream);
int pipewright_sort_quantization_decode(const PipewrightSortQuantization* settings,
                                        const unsigned char* payload, float* x, void* stream);

}  // extern "C"

/// 2^4 groups have 32 ranks, one per lane of a warp.
inline constexpr int kPipewrightMostSplit = 4;
