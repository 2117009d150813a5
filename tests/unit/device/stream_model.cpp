// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/stream_model.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace pipewright::test {
namespace {

using Clock = StreamModel::Clock;

void join_into(Clock& clock, const Clock& other) {
  for (const auto& [stream, tick] : other) clock[stream] = std::max(clock[stream], tick);
}

/// What threads that have ended knew: whoever goes on has waited for them. Guarded by the model.
Clock& of_ended_threads() {
  static auto* const clock = new Clock;
  return *clock;
}

/// What a thread has waited for.
struct Host {
  Clock known;
  std::mutex* guard = nullptr;
  ~Host() {
    if (guard == nullptr) return;
    const std::lock_guard lock(*guard);
    join_into(of_ended_threads(), known);
  }
};
thread_local Host host;

}  // namespace

StreamModel& StreamModel::instance() {
  static auto* const model = new StreamModel;  // tensors may outlive everything static
  return *model;
}

StreamModel::Memory* StreamModel::find(const void* address) {
  auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) return nullptr;
  const auto& [begin, memory] = *--after;
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(begin);
  return static_cast<std::size_t>(offset) < memory.bytes ? &after->second : nullptr;
}

void StreamModel::allocate(const void* memory, std::size_t bytes, const Stream& stream) {
  const std::lock_guard lock(mutex_);
  memory_[memory] = {.bytes = bytes, .first = stream};
  bytes_ += bytes;
  most_bytes_ = std::max(most_bytes_, bytes_);
}

void StreamModel::announce(const void* memory, const Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (Memory* const found = find(memory)) found->announced.insert(stream);
}

void StreamModel::expect_done(const Clock& uses, const Clock& known, const char* what,
                              const Stream& stream) {
  for (const auto& [other, tick] : uses) {
    const auto done = known.find(other);
    if (done != known.end() && done->second >= tick) continue;
    faults_.insert(concat(what, " on device ", stream.first, " stream ", stream.second,
                          " does not wait for device ", other.first, " stream ", other.second));
  }
}

void StreamModel::free(const void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_.find(memory);
  if (found == memory_.end()) return;
  const Memory& freed = found->second;
  bytes_ -= freed.bytes;
  Clock known = clocks_[freed.first], elsewhere = freed.writes;
  join_into(known, host.known);
  join_into(known, of_ended_threads());
  join_into(elsewhere, freed.reads);
  std::erase_if(elsewhere, [&](const auto& use) {
    return use.first == freed.first || freed.announced.contains(use.first);
  });
  expect_done(elsewhere, known, "the next tensor in freed memory", freed.first);
  memory_.erase(found);
}

void StreamModel::work(const Stream& stream, std::span<const void* const> reads,
                       std::span<const void* const> writes) {
  const std::lock_guard lock(mutex_);
  Clock& clock = clocks_[stream];
  join_into(clock, host.known);
  join_into(clock, of_ended_threads());
  const std::int64_t tick = ++clock[stream];
  for (const void* const address : reads)
    if (Memory* const memory = find(address)) {
      expect_done(memory->writes, clock, "a read", stream);
      memory->reads[stream] = tick;
    }
  for (const void* const address : writes)
    if (Memory* const memory = find(address)) {
      expect_done(memory->writes, clock, "a write", stream);
      expect_done(memory->reads, clock, "a write after a read", stream);
      memory->writes[stream] = tick;
    }
}

StreamModel::Clock StreamModel::record(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  return clocks_[stream];
}

void StreamModel::block(const Stream& stream, const Clock& clock) {
  const std::lock_guard lock(mutex_);
  join_into(clocks_[stream], clock);
}

void StreamModel::wait_on_host(const Clock& clock) {
  const std::lock_guard lock(mutex_);
  ++host_waits_;
  host.guard = &mutex_;
  join_into(host.known, clock);
  perform_late(clock);
}

void StreamModel::later(const Stream& stream, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  late_.push_back({stream, clocks_[stream][stream], std::move(action)});
}

std::set<std::string> StreamModel::take_faults() {
  const std::lock_guard lock(mutex_);
  return std::exchange(faults_, {});
}

int StreamModel::streams_used(int device) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(clocks_, [&](const auto& entry) {
    const auto own = entry.second.find(entry.first);
    return entry.first.first == device && own != entry.second.end() && own->second > 0;
  }));
}

void StreamModel::perform_late(const Clock& clock) {
  std::erase_if(late_, [&](const Late& late) {
    const auto done = clock.find(late.stream);
    if (done == clock.end() || done->second < late.tick) return false;
    late.action();
    return true;
  });
}

void StreamModel::catch_up(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  perform_late(clocks_[stream]);
}

std::size_t StreamModel::take_most_bytes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(most_bytes_, bytes_);
}

}  // namespace pipewright::test
