/// What a device with streams promises, and nothing more: work on one stream is done in order; that
/// on different streams is ordered by events and by waits of the host only. Says where a program
/// relies on anything else, though on this machine it happened to work.
///
/// Every piece of work carries the vector clock of what is certain to be done before it. A tensor's
/// memory remembers who wrote and read it; memory given back may be made into the next tensor of
/// its first stream at once, unless uses elsewhere were announced or are known to be over.
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
  using Clock = std::map<Stream, std::int64_t>;  ///< of each stream, pieces of work done before

  static StreamModel& instance();

  void allocate(const void* memory, std::size_t bytes, const Stream& stream);
  void free(const void* memory);
  /// The memory's tensor will be used on that stream too.
  void announce(const void* memory, const Stream& stream);

  /// Queues a piece of work by the calling thread.
  void work(const Stream& stream, std::span<const void* const> reads,
            std::span<const void* const> writes);
  Clock record(const Stream& stream);
  void block(const Stream& stream, const Clock& clock);
  /// The calling thread waits for what the clock names.
  void wait_on_host(const Clock& clock);
  /// Does it when a host waits for the last work queued on the stream, not before.
  void later(const Stream& stream, std::function<void()> action);

  /// What went wrong since the last call, once each.
  std::set<std::string> take_faults();
  int host_waits() const { return host_waits_; }
  /// How many streams of that device have been given work.
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
  void expect_done(const Clock& uses, const Clock& known, const char* what, const Stream& stream);

  mutable std::mutex mutex_;
  std::map<const void*, Memory> memory_;
  std::map<Stream, Clock> clocks_;
  std::vector<Late> late_;
  std::set<std::string> faults_;
  int host_waits_ = 0;
};

}  // namespace pipewright::test
