// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/offloaded.h"

#include <c10/core/StreamGuard.h>

#include <utility>

#include "core/runtime/devices/device_stream.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

std::int64_t size_of(const c10::Storage& storage) {
  return static_cast<std::int64_t>(storage.nbytes());
}

at::TensorOptions bytes_on(at::Device device) {
  return at::TensorOptions(at::kByte).device(device);
}

/// The bytes of a storage as a tensor.
at::Tensor as_bytes(const c10::Storage& storage) {
  return at::empty({0}, bytes_on(storage.device())).set_(storage, 0, {size_of(storage)}, {1});
}

/// Gives the storage other memory, and returns what it had.
c10::DataPtr swap_memory(const c10::Storage& storage, c10::DataPtr memory) {
  return storage.unsafeGetStorageImpl()->set_data_ptr(std::move(memory));
}

c10::DataPtr no_memory(at::Device device) {
  return {nullptr, device};
}

/// Streams of a device for copies to its host and back, which wait for the kernels so far.
c10::Stream stream_to_host(at::Device device) {
  const c10::Stream compute = current_stream(device);
  const c10::Stream stream = copy_stream(compute, device, at::kCPU);
  recorded_on(compute).block(stream);
  return stream;
}
c10::Stream stream_from_host(at::Device device) {
  const c10::Stream compute = current_stream(device);
  const c10::Stream stream = copy_stream(compute, device, device);  // no message takes this one
  recorded_on(compute).block(stream);
  return stream;
}

}  // namespace

Offloaded::Offloaded(const WeakStorages& storages) {
  const at::NoGradGuard no_grad;
  for (const auto& each : storages)
    if (auto held = each.lock(); held && held->nbytes() > 0)
      blocks_.push_back({c10::Storage(std::move(held)), {}});
  if (blocks_.empty()) return;
  const at::Device device = blocks_.front().storage.device();
  c10::OptionalStreamGuard switched;
  if (!device.is_cpu()) switched.reset_stream(stream_to_host(device));
  for (Block& block : blocks_) {
    const at::Tensor bytes = as_bytes(block.storage);
    if (device.is_cpu()) {
      block.host = bytes.clone();
      continue;
    }
    record_use(bytes, current_stream(device));
    block.host = at::empty({size_of(block.storage)}, bytes_on(at::kCPU).pinned_memory(true));
    block.host.copy_(bytes, /*non_blocking=*/true);
  }
  if (!device.is_cpu()) away_ = recorded_on(current_stream(device));
  for (const Block& block : blocks_) swap_memory(block.storage, no_memory(device));
}

void Offloaded::fetch() {
  if (blocks_.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Device device = blocks_.front().storage.device();
  std::vector<at::Tensor> fresh;  // allocated for the stream on which they will be freed
  for (const Block& block : blocks_)
    fresh.push_back(at::empty({size_of(block.storage)}, bytes_on(device)));
  c10::OptionalStreamGuard switched;
  if (!device.is_cpu()) {
    switched.reset_stream(stream_from_host(device));
    away_->block(current_stream(device));
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!device.is_cpu()) record_use(fresh[i], current_stream(device));
    fresh[i].copy_(blocks_[i].host, /*non_blocking=*/!device.is_cpu());
    swap_memory(blocks_[i].storage, swap_memory(fresh[i].storage(), no_memory(device)));
  }
  if (!device.is_cpu()) back_ = recorded_on(current_stream(device));
}

void Offloaded::await() const {
  if (back_) back_->block(current_stream(back_->device()));
}

Tensors OffloadedForwards::noting(Forward forward, at::DeviceType device,
                                  const std::function<Tensors()>& run) {
  std::optional<NewStorages> made(device);
  Tensors outputs = run();
  kept_[forward].noted = made->noted();
  made.reset();
  for (at::Tensor& output : outputs) output = output.clone();
  return outputs;
}

void OffloadedForwards::offload(Forward forward) {
  Kept& kept = kept_.at(forward);
  kept.moved.emplace(std::exchange(kept.noted, {}));
}

void OffloadedForwards::fetch(Forward forward) {
  kept_.at(forward).moved->fetch();
}

void OffloadedForwards::await(Forward forward) {
  const auto kept = kept_.find(forward);
  if (kept == kept_.end() || !kept->second.moved) return;
  kept->second.moved->await();
  kept_.erase(kept);
}

}  // namespace pipewright
