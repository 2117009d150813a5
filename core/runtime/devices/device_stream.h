/// Streams of devices: queues of work that a device does in order, several of them side by side.
/// Written against LibTorch's device-generic streams, so it needs no CUDA to be compiled. On a CPU
/// there are none, and nothing here costs anything.
///
/// A worker's kernels go to a compute stream of its own, so that workers on one device overlap.
/// Streams live as long as the process, and a worker has the same one in every run: LibTorch keeps
/// freed memory by the stream it was used on.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

namespace pipewright {

/// The stream on which the calling thread computes on that device.
c10::Stream current_stream(at::Device device);

/// The stream on which what is computed on `sender` goes over to the device `to`; its end on the
/// device `on`, which is the sender's or `to`. Any thread.
c10::Stream copy_stream(const c10::Stream& sender, at::Device on, at::Device to);

/// The stream for messages from one process to another; its end on the device `on` of either.
c10::Stream link_stream(int from, int to, at::Device on);

/// After everything queued on the stream so far.
c10::Event recorded_on(const c10::Stream& stream);

/// The tensor is used on a stream that it was not made on: its memory is not given to others before
/// the work queued there until its end is done. Undefined tensors are left alone.
void record_use(const at::Tensor& tensor, const c10::Stream& stream);

/// While it lives, the calling thread is that worker's: it computes on the worker's own stream. Its
/// end waits for the device, which may still use what the worker held.
class WorkerStream {
 public:
  /// What the device's default stream was asked for before comes first: weights made or loaded.
  WorkerStream(int worker, at::Device device);
  ~WorkerStream();
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;
  /// Waits already, and throws what went wrong on the device.
  void finish();

 private:
  c10::OptionalStreamGuard guard_;
  bool finished_ = false;
};

}  // namespace pipewright
