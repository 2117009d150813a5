// SPDX-License-Identifier: Apache-2.0
/// Streams of devices: queues of work, each performed in order, several of them at the same time.
/// The code uses LibTorch's device-generic streams, so it compiles without CUDA. A CPU has no
/// streams, and nothing here costs anything there.
///
/// A worker's kernels go to a compute stream of its own, so that workers on one device overlap.
/// Streams live as long as the process, and a worker has the same one in every run, because
/// LibTorch caches freed memory by the stream it was used on.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

namespace pipewright {

/// The stream on which the calling thread computes on that device.
c10::Stream current_stream(at::Device device);

/// The stream for copies of results of the stream `sender` to the device `to`. Such a copy has a
/// stream at either end: `on` is the sender's device or `to`. Thread-safe.
c10::Stream copy_stream(const c10::Stream& sender, at::Device on, at::Device to);

/// The stream on device `on`, of either process, for messages from process `from` to `to`.
c10::Stream link_stream(int from, int to, at::Device on);

/// An event that completes after all work queued on the stream so far.
c10::Event recorded_on(const c10::Stream& stream);

/// Records that the tensor is used on a stream that it was not allocated on: once it is freed, its
/// memory is not reused before the work queued on that stream is done. Ignores undefined tensors.
void record_use(const at::Tensor& tensor, const c10::Stream& stream);

/// While it lives, the calling thread computes on the stream of that worker. The destructor waits
/// for the device, which may still use the worker's tensors.
class WorkerStream {
 public:
  /// Work queued on the device's default stream before, such as loading weights, comes first.
  WorkerStream(int worker, at::Device device);
  ~WorkerStream();
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;
  /// Waits for the device now, and throws its errors, which the destructor drops.
  void finish();

 private:
  c10::OptionalStreamGuard guard_;
  bool finished_ = false;
};

}  // namespace pipewright
