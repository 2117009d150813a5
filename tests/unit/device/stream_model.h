// SPDX-License-Identifier: Apache-2.0
/// A model of a device with streams that guarantees only this: work on one stream is done in order,
/// and work on different streams is ordered only by events and by waits of the host. It reports
/// where a program relies on anything else, even if that happened to work on this machine.
///
/// Every piece of work carries the vector clock of all work that is certain to be done before it.
/// For each tensor's memory the model records reads and writes. Freed memory may be reused at once
/// by the stream that it was allocated on, unless uses on other streams were announced and may
/// still run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::test {

/// Thread-safe.
class StreamModel {
 public:
  using Stream = std::pair<int, std::int64_t>;   ///< device, number
  using Clock = std::map<Stream, std::int64_t>;  ///< pieces of work done before, by stream

  static StreamModel& instance();

  void allocate(const void* memory, std::size_t bytes, const Stream& stream);
  void free(const void* memory);
  /// Records that the memory's tensor is used on that stream, too.
  void announce(const void* memory, const Stream& stream);

  /// Queues a piece of work by the calling thread.
  void work(const Stream& stream, std::span<const void* const> reads,
            std::span<const void* const> writes);
  Clock record(const Stream& stream);
  void block(const Stream& stream, const Clock& clock);
  /// Records that the calling thread waits for the work in the clock.
  void wait_on_host(const Clock& clock);
  /// Delays the action until a host waits for the last work queued on the stream.
  void later(const Stream& stream, std::function<void()> action);

  /// Performs the delayed actions that work of this stream certainly follows.
  void catch_up(const Stream& stream);

  /// The faults since the last call, each once.
  std::set<std::string> take_faults();
  int host_waits() const { return host_waits_; }
  /// The most bytes that all devices held at once since the last call.
  std::size_t take_most_bytes();
  /// Number of streams of that device that have had work.
  int streams_used(int device) const;

 private:
  struct Memory {
    std::size_t bytes = 0;
    Stream first;
    Clock writes, reads;  ///< the latest of each stream
    std::set<Stream> announced;
  };
  struct Late {
    Stream stream;
    std::int64_t tick;
    std::function<void()> action;
  };
  Memory* find(const void* address);
  void perform_late(const Clock& clock);
  void expect_done(const Clock& uses, const Clock& known, const char* what, const Stream& stream);

  mutable std::mutex mutex_;
  std::map<const void*, Memory> memory_;
  std::map<Stream, Clock> clocks_;
  std::vector<Late> late_;
  std::set<std::string> faults_;
  int host_waits_ = 0;
  std::size_t bytes_ = 0, most_bytes_ = 0;
};

}  // namespace pipewright::test
