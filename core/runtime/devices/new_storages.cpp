// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/new_storages.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/tensors/torch.h"

namespace pipewright {

struct NewStorages::Watch {
  Watch(at::DeviceType of_type, std::function<void()> after_each)
      : type(of_type),
        after(std::move(after_each)),
        outer(innermost),
        callback(at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                                .needsInputs(true)
                                                .needsOutputs(true)
                                                .scopes({at::RecordScope::FUNCTION}))) {
    innermost = this;
  }
  ~Watch() {
    at::removeCallback(callback);
    innermost = outer;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// A storage that was seen. While this lives its address is not given to another one.
  struct Seen {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::size_t number = 0;  ///< in the order in which they were seen
    bool is_new = false;
  };

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    // An input of a nested operator was made within the outer one, or is an input of that one.
    const bool within = innermost->depth++ > 0;
    for (const c10::IValue& input : call.inputs()) innermost->see(input, within);
    return nullptr;
  }
  static void end(const at::RecordFunction& call, at::ObserverContext*) {
    --innermost->depth;
    for (const c10::IValue& output : call.outputs()) innermost->see(output, true);
    std::erase_if(innermost->seen, [](const auto& each) { return each.second.storage.expired(); });
    if (innermost->after) innermost->after();
  }

  void see(const c10::IValue& value, bool is_new) {
    if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) see(item, is_new);
      return;
    }
    if (!value.isTensor()) return;
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || tensor.device().type() != type || !tensor.has_storage()) return;
    const c10::Storage& storage = tensor.storage();
    seen.try_emplace(storage.unsafeGetStorageImpl(),
                     Seen{storage.getWeakStorageImpl(), next++, is_new});
  }

  static thread_local Watch* innermost;
  const at::DeviceType type;
  const std::function<void()> after;
  Watch* const outer;
  const at::CallbackHandle callback;
  std::unordered_map<const c10::StorageImpl*, Seen> seen;
  std::size_t next = 0;
  int depth = 0;  ///< operators that are running
};

thread_local NewStorages::Watch* NewStorages::Watch::innermost = nullptr;

NewStorages::NewStorages(at::DeviceType type, std::function<void()> after)
    : watch_(std::make_unique<Watch>(type, std::move(after))) {}

NewStorages::~NewStorages() = default;

WeakStorages NewStorages::noted() const {
  std::vector<const Watch::Seen*> all;
  for (const auto& [address, seen] : watch_->seen)
    if (seen.is_new) all.push_back(&seen);
  std::ranges::sort(all, {}, &Watch::Seen::number);
  WeakStorages storages;
  for (const Watch::Seen* seen : all) storages.push_back(seen->storage);
  return storages;
}

std::int64_t NewStorages::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [address, seen] : watch_->seen)
    if (const auto storage = seen.storage.lock(); storage && seen.is_new)
      bytes += static_cast<std::int64_t>(storage->nbytes());
  return bytes;
}

}  // namespace pipewright
