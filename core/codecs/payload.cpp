// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/payload.h"

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {

void check_bytes(const at::Tensor& payload, std::int64_t expected) {
  if (payload.numel() != expected)
    throw Error(ErrorKind::Data, concat("a compressed message has ", payload.numel(),
                                        " bytes; expected ", expected, " for its dimensions"));
}

at::Tensor floats_of(const at::Tensor& payload, std::int64_t first, std::int64_t count) {
  return payload.narrow(0, first, 4 * count).view(at::kFloat);
}

std::span<float> span_of(const at::Tensor& floats) {
  return {floats.mutable_data_ptr<float>(), static_cast<std::size_t>(floats.numel())};
}

std::span<std::byte> bytes_from(const at::Tensor& payload, std::int64_t first) {
  return std::span(static_cast<std::byte*>(payload.mutable_data_ptr()), payload.nbytes())
      .subspan(static_cast<std::size_t>(first));
}

bool goes_raw(const at::Tensor& x) {
  return x.is_cpu() && !x.isfinite().all().item<bool>();
}

at::Tensor quotient(const at::Tensor& x, double y) {
  return x / at::full({1}, y, x.options());
}

at::Tensor poison(const at::Tensor& x) {
  return (x * 0).sum();
}

}  // namespace pipewright
