// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/device_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/mutex.h"

namespace pipewright {
namespace {

using Guard = c10::impl::VirtualGuardImpl;

/// Compute streams and copy streams come from two pools, so that a copy never queues behind a
/// kernel, however many workers there are.
enum class Pool { Compute, Copy };

/// The stream cached under that key; the first call takes it from the device's pool.
template <class Key>
c10::Stream kept_stream(const Key& key, at::Device device, Pool pool) {
  static Mutex mutex;
  static std::map<Key, c10::Stream> streams;
  const Lock lock(mutex);
  if (const auto known = streams.find(key); known != streams.end()) return known->second;
  const bool high_priority = pool == Pool::Copy;
  const c10::Stream stream = Guard(device.type()).getStreamFromGlobalPool(device, high_priority);
  return streams.emplace(key, stream).first->second;
}

}  // namespace

c10::Stream current_stream(at::Device device) {
  return Guard(device.type()).getStream(device);
}

c10::Stream copy_stream(const c10::Stream& sender, at::Device on, at::Device to) {
  return kept_stream(std::tuple(sender.hash(), on.str(), to.str()), on, Pool::Copy);
}

c10::Stream link_stream(int from, int to, at::Device on) {
  return kept_stream(std::tuple(from, to, on.str()), on, Pool::Copy);
}

c10::Event recorded_on(const c10::Stream& stream) {
  c10::Event event(stream.device_type());
  event.record(stream);  // switches to the stream's device meanwhile
  return event;
}

void record_use(const at::Tensor& tensor, const c10::Stream& stream) {
  if (!tensor.defined()) return;
  Guard(stream.device_type()).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

WorkerStream::WorkerStream(int worker, at::Device device) {
  if (device.is_cpu()) return;
  const c10::Stream stream = kept_stream(std::pair(worker, device.str()), device, Pool::Compute);
  recorded_on(c10::Stream(c10::Stream::DEFAULT, device)).block(stream);
  guard_.reset_stream(stream);
}

WorkerStream::~WorkerStream() {
  if (finished_) return;
  try {
    finish();
  } catch (const std::exception&) {  // another exception is in flight already
  }
}

void WorkerStream::finish() {
  finished_ = true;
  if (const auto stream = guard_.current_stream()) stream->synchronize();
}

}  // namespace pipewright
