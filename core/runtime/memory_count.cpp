#include "core/runtime/memory_count.h"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <mutex>

namespace pipewright {

/// LibTorch reports to the thread's profiler, which this pretends to be.
struct MemoryCount::Counted final : c10::MemoryReportingInfoBase {
  explicit Counted(at::Device counted_device) : device(counted_device) {}

  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t,
                         c10::Device on) override {
    if (on.type() != device.type()) return;
    if (device.has_index() && on.has_index() && on.index() != device.index()) return;
    const std::lock_guard lock(mutex);
    live += size;
    peak = std::max(peak, live);
  }
  bool memoryProfilingEnabled() const override { return true; }

  const at::Device device;
  mutable std::mutex mutex;
  std::int64_t live = 0, peak = 0;
};

MemoryCount::MemoryCount(at::Device device) : counted_(std::make_shared<Counted>(device)) {
  c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, counted_);
}

MemoryCount::~MemoryCount() {
  c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
}

std::int64_t MemoryCount::live() const {
  const std::lock_guard lock(counted_->mutex);
  return counted_->live;
}

std::int64_t MemoryCount::peak() const {
  const std::lock_guard lock(counted_->mutex);
  return counted_->peak;
}

void MemoryCount::forget_peak() {
  const std::lock_guard lock(counted_->mutex);
  counted_->peak = counted_->live;
}

}  // namespace pipewright
