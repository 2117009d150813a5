/// What the module of CUDA kernels offers (libpipewright_cuda.so). Plain C, so that the compilers
/// on either side need not agree; pointers are the device's, `stream` is a cudaStream_t. Everything
/// is queued, nothing waited for. Returned is
/// CUDA's error code, 0 for none.
#pragma once

#include <cstdint>

extern "C" {

/// Settings as SortQuantization has them, split already fit for n (for_values()).
struct PipewrightSortQuantization {
  std::int64_t n;  ///< at least 1
  int bits;
  int split;      ///< at most kPipewrightMostSplit
  int container;  ///< 0 or 1
  int device;     ///< index of the device that everything is on
};

/// Bytes of memory that encoding works in, 8-byte aligned.
std::int64_t pipewright_sort_quantization_workspace(const PipewrightSortQuantization* settings);
int pipewright_sort_quantization_encode(const PipewrightSortQuantization* settings, const float* x,
                                        unsigned char* payload, void* workspace, void* stream);
int pipewright_sort_quantization_decode(const PipewrightSortQuantization* settings,
                                        const unsigned char* payload, float* x, void* stream);

}  // extern "C"

inline constexpr int kPipewrightMostSplit = 4;  ///< 32 ranks: a warp holds them
