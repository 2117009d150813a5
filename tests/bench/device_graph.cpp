// SPDX-License-Identifier: Apache-2.0
// A module that device_bench loads where there is a GPU: work as a CUDA graph. It alone includes
// CUDA's headers.
#include "tests/bench/device_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>

#include <exception>
#include <memory>

void* pipewright_capture(void (*work)(void*), void* argument, int warm_ups) {
  for (int i = 0; i < warm_ups; ++i) work(argument);
  c10::cuda::device_synchronize();
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    work(argument);
  } catch (...) {  // the stream must not go on capturing
    try {
      graph->capture_end();
    } catch (const std::exception&) {
    }
    throw;
  }
  graph->capture_end();
  return graph.release();
}

void pipewright_replay(void* graph) {
  static_cast<at::cuda::CUDAGraph*>(graph)->replay();
}

void pipewright_release(void* graph) {
  delete static_cast<at::cuda::CUDAGraph*>(graph);
}
