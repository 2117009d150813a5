// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/parcel.h"

#include <algorithm>

#include "core/runtime/devices/device_stream.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

/// The sender's copy stream, which waits for the tensors but not for kernels queued after them.
c10::Stream sending_stream(const Tensors& tensors, const c10::Stream& compute, at::Device to) {
  const c10::Stream stream = copy_stream(compute, compute.device(), to);
  recorded_on(compute).block(stream);
  for (const at::Tensor& tensor : tensors) record_use(tensor, stream);
  return stream;
}

/// Copies one tensor. Between devices LibTorch enables peer access (get_p2p_access), queues the
/// copy on the source's current stream, and lets both devices' current streams wait for each other.
at::Tensor copied(const at::Tensor& tensor, at::Device to) {
  if (!tensor.defined()) return tensor;
  return tensor.is_cpu() ? upload(tensor, to) : tensor.to(to, /*non_blocking=*/!to.is_cpu());
}

Parcel copy_over(Tensors tensors, at::Device from, at::Device to) {
  const c10::Stream compute = current_stream(from);
  c10::SmallVector<c10::Stream, 2> streams;
  if (!from.is_cpu()) streams.push_back(sending_stream(tensors, compute, to));
  if (!to.is_cpu()) streams.push_back(copy_stream(compute, to, to));
  const c10::MultiStreamGuard switched(streams);
  for (at::Tensor& tensor : tensors) tensor = copied(tensor, to);
  Parcel parcel{.tensors = std::move(tensors)};
  if (!to.is_cpu()) parcel.ready = recorded_on(streams.back());
  return parcel;
}

}  // namespace

Parcel depart(Tensors tensors, at::Device to) {
  const auto first = std::ranges::find_if(tensors, &at::Tensor::defined);
  if (first == tensors.end()) return {.tensors = std::move(tensors)};
  const at::Device from = first->device();
  if (from != to) return copy_over(std::move(tensors), from, to);
  Parcel parcel{.tensors = std::move(tensors)};
  if (!to.is_cpu()) parcel.ready = recorded_on(current_stream(to));
  return parcel;
}

Tensors arrive(Parcel parcel) {
  if (!parcel.ready) return std::move(parcel.tensors);
  const c10::Stream here = current_stream(parcel.ready->device());
  parcel.ready->block(here);
  for (const at::Tensor& tensor : parcel.tensors) record_use(tensor, here);
  return std::move(parcel.tensors);
}

}  // namespace pipewright
