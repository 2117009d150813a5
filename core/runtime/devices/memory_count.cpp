// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/memory_count.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/mutex.h"
#include "core/stage/torch.h"

namespace pipewright {

struct MemoryCount::Counted {
  Counted() = default;
  virtual ~Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  virtual std::int64_t live() const = 0;
  virtual std::int64_t peak() const = 0;
  virtual void forget_peak() = 0;
};

struct MemoryCount::OfAllocator final : MemoryCount::Counted {
  /// Receives LibTorch's memory reports by posing as the thread's profiler.
  struct Reports final : c10::MemoryReportingInfoBase {
    explicit Reports(at::Device counted_device) : device(counted_device) {}

    void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t,
                           c10::Device on) override {
      if (on.type() != device.type()) return;
      if (device.has_index() && on.has_index() && on.index() != device.index()) return;
      const Lock lock(mutex);
      live += size;
      peak = std::max(peak, live);
    }
    bool memoryProfilingEnabled() const override { return true; }

    const at::Device device;
    mutable Mutex mutex;
    std::int64_t live PIPEWRIGHT_GUARDED_BY(mutex) = 0;
    std::int64_t peak PIPEWRIGHT_GUARDED_BY(mutex) = 0;
  };

  explicit OfAllocator(at::Device device) : reports(std::make_shared<Reports>(device)) {
    c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, reports);
  }
  ~OfAllocator() override { c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE); }

  std::int64_t live() const override {
    const Lock lock(reports->mutex);
    return reports->live;
  }
  std::int64_t peak() const override {
    const Lock lock(reports->mutex);
    return reports->peak;
  }
  void forget_peak() override {
    const Lock lock(reports->mutex);
    reports->peak = reports->live;
  }

  const std::shared_ptr<Reports> reports;
};

/// Counts on the meta device, where no allocator is called. It watches operators instead: storage
/// that one returns and that was not among its inputs is new.
struct MemoryCount::OfOperators final : MemoryCount::Counted {
  OfOperators()
      : outer(innermost),
        callback(at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                                .needsInputs(true)
                                                .needsOutputs(true)
                                                .scopes({at::RecordScope::FUNCTION}))) {
    innermost = this;
  }
  ~OfOperators() override {
    at::removeCallback(callback);
    innermost = outer;
  }

  std::int64_t live() const override {
    std::int64_t bytes = 0;
    for (const auto& [address, memory] : seen)
      if (const auto storage = memory.storage.lock(); storage && memory.taken)
        bytes += static_cast<std::int64_t>(storage->nbytes());
    return bytes;
  }
  std::int64_t peak() const override { return most; }
  void forget_peak() override { most = live(); }

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    bool taken = false;  ///< allocated since the count began
  };

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    for (const c10::IValue& input : call.inputs()) innermost->see(input, false);
    return nullptr;
  }
  static void end(const at::RecordFunction& call, at::ObserverContext*) {
    for (const c10::IValue& output : call.outputs()) innermost->see(output, true);
    std::erase_if(innermost->seen,
                  [](const auto& memory) { return memory.second.storage.expired(); });
    innermost->most = std::max(innermost->most, innermost->live());
  }

  void see(const c10::IValue& value, bool taken) {
    if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) see(item, taken);
      return;
    }
    if (!value.isTensor()) return;
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || !tensor.is_meta()) return;
    const c10::Storage& storage = tensor.storage();
    seen.try_emplace(storage.unsafeGetStorageImpl(), Memory{storage.getWeakStorageImpl(), taken});
  }

  static thread_local OfOperators* innermost;
  OfOperators* const outer;
  const at::CallbackHandle callback;
  std::unordered_map<const c10::StorageImpl*, Memory> seen;
  std::int64_t most = 0;
};

thread_local MemoryCount::OfOperators* MemoryCount::OfOperators::innermost = nullptr;

MemoryCount::MemoryCount(at::Device device) {
  if (device.is_meta())
    counted_ = std::make_unique<OfOperators>();
  else
    counted_ = std::make_unique<OfAllocator>(device);
}

MemoryCount::~MemoryCount() = default;

std::int64_t MemoryCount::live() const {
  return counted_->live();
}

std::int64_t MemoryCount::peak() const {
  return counted_->peak();
}

void MemoryCount::forget_peak() {
  counted_->forget_peak();
}

}  // namespace pipewright
