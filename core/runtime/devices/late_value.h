/// Numbers that a device computes and the host reads later, so that neither waits for the other.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace pipewright {

class LateValue {
 public:
  /// Of any shape, type and device. Its copy to the host is queued on the current stream.
  explicit LateValue(const at::Tensor& value);
  /// Whether read() would not wait.
  bool is_there() const;
  /// Waits for that copy, not for what was queued after it. On a CPU it is there.
  const at::Tensor& read() const;

 private:
  at::Tensor host_;
  std::optional<c10::Event> copied_;
};

}  // namespace pipewright
