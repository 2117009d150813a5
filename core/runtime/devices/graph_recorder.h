// SPDX-License-Identifier: Apache-2.0
/// The interface to a device that records kernels as graphs and launches them again (CUDA graphs).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace pipewright {

/// Records on the calling thread's current stream, which must not be the default one. Used by one
/// thread; kernels that autograd starts from its own threads belong to it. Its functions throw
/// LibTorch's errors.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;

  /// From begin_pool() to end_pool() tensors get memory of one of the recorder's pools, which are
  /// numbered from 0 and exist as soon as they are named. Kernels run as usual.
  virtual void begin_pool(int pool) = 0;
  virtual void end_pool() = 0;
  /// From begin() to end() kernels are recorded and do not run; tensors get memory of that pool
  /// where they would get it without the recording. end() returns the graph's number, counted from
  /// 0.
  virtual void begin(int pool) = 0;
  virtual int end() = 0;
  /// Queues the kernels of a graph. Graphs share memory, so that they must be launched in the order
  /// in which they were recorded.
  virtual void launch(int graph) = 0;
  /// Forgets all graphs; the memory of tensors that are still alive stays.
  virtual void clear() = 0;
  /// Addresses of a pool's memory that is in use, in the order in which it was allocated.
  virtual std::vector<std::uintptr_t> in_use(int pool) const = 0;
};

/// The recorder of a CUDA device. Throws Error{Experiment} if `device` is another one, or if the
/// program was built without it.
std::unique_ptr<GraphRecorder> cuda_graphs(at::Device device);

}  // namespace pipewright
