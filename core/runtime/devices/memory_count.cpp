// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/memory_count.h"

#include <c10/core/Allocator.h>

#include <algorithm>

#include "core/base/mutex.h"
#include "core/runtime/devices/new_storages.h"
#include "core/tensors/torch.h"

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

/// Counts on the meta device, where no allocator is called.
struct MemoryCount::OfOperators final : MemoryCount::Counted {
  OfOperators() : storages(at::kMeta, [this] { most = std::max(most, live()); }) {}

  std::int64_t live() const override { return storages.bytes(); }
  std::int64_t peak() const override { return most; }
  void forget_peak() override { most = live(); }

 private:
  const NewStorages storages;
  std::int64_t most = 0;
};

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
