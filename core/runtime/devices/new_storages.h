// SPDX-License-Identifier: Apache-2.0
/// Finds the memory that a piece of code has made and that somebody still holds, by watching what
/// LibTorch's operators take and return.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace pipewright {

/// Storages that may be gone by now.
using WeakStorages = std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>;

/// While it lives, notes each storage that an operator of this thread makes: that it returns, or
/// hands to another one within itself, and that was not among the inputs of any before. While
/// several are nested, only the inner one notes. Code under at::DisableRecordFunctionGuard is not
/// seen.
class NewStorages {
 public:
  /// Notes those on devices of that type. `after` is called after each operator, if there is one.
  explicit NewStorages(at::DeviceType type, std::function<void()> after = {});
  ~NewStorages();
  NewStorages(const NewStorages&) = delete;
  NewStorages& operator=(const NewStorages&) = delete;

  /// Those that somebody held after the last operator, the oldest first.
  WeakStorages noted() const;
  /// The bytes of those that somebody holds now.
  std::int64_t bytes() const;

 private:
  struct Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace pipewright
