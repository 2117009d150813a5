// SPDX-License-Identifier: Apache-2.0
/// Numbers that a device computes and the host reads later, so that neither waits for the other.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace pipewright {

class LateValue {
 public:
  /// Queues a copy of `value`, of any shape, type and device, to the host on the current stream.
  explicit LateValue(const at::Tensor& value);
  /// Whether the copy is done, so that read() returns at once.
  bool is_there() const;
  /// Waits for the copy, but not for work queued after it. A value on a CPU is there at once.
  const at::Tensor& read() const;

 private:
  at::Tensor host_;
  std::optional<c10::Event> copied_;
};

}  // namespace pipewright
