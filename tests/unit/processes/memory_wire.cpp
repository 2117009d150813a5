// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/processes/memory_wire.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <thread>

namespace pipewright::test {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;
std::atomic<std::int64_t> virtual_rounds = 0;
constexpr std::chrono::milliseconds kRound{200};

/// What is between the ends.
class Exchange {
 public:
  Exchange(int size, double bytes_per_second)
      : bytes_per_second_(bytes_per_second), rounds_(static_cast<std::size_t>(size)) {
    virtual_rounds = 0;
  }

  struct Transfer {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    bool complete = false;
    TimePoint arrives;
  };
  using Handle = std::shared_ptr<Transfer>;

  void send(int from, int to, int channel, const Handle& transfer) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[{from, to, channel}];
    line.sent.push_back(transfer);
    match(line, {from, to});
  }
  void receive(int from, int to, int channel, const Handle& transfer) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[{from, to, channel}];
    line.wanted.push_back(transfer);
    match(line, {from, to});
  }
  std::optional<std::size_t> done(const Handle& transfer) {
    const std::lock_guard lock(mutex_);
    if (!transfer->complete || has_to_come(transfer->arrives)) return std::nullopt;
    return transfer->bytes;
  }
  bool closed(int rank) {
    const std::lock_guard lock(mutex_);
    closed_.insert(rank);
    return closed_.size() == rounds_.size();
  }
  void tell(int from, int to, std::string note) {
    const std::lock_guard lock(mutex_);
    const TimePoint arrives = carry({from, to}, note.size());
    notes_[{from, to}].push_back({arrives, std::move(note)});
  }
  std::optional<Wire::Note> hear(int to) {
    const std::lock_guard lock(mutex_);
    for (int from = 0; from < std::ssize(rounds_); ++from) {
      auto& notes = notes_[{from, to}];
      if (notes.empty() || has_to_come(notes.front().first)) continue;
      Wire::Note note{from, std::move(notes.front().second)};
      notes.pop_front();
      return note;
    }
    ++rounds_[static_cast<std::size_t>(to)];
    virtual_rounds = *std::ranges::min_element(rounds_);
    return std::nullopt;
  }

 private:
  struct Line {
    std::deque<Handle> sent, wanted;
  };

  using Direction = std::pair<int, int>;

  bool has_to_come(TimePoint arrives) const {
    return bytes_per_second_ > 0 && arrives > virtual_now();
  }
  /// When such bytes arrive that are sent now.
  TimePoint carry(Direction direction, std::size_t bytes) {
    if (bytes_per_second_ <= 0) return {};
    TimePoint& free = free_[direction];
    free = std::max(free, virtual_now()) +
           std::chrono::microseconds(
               static_cast<std::int64_t>(1e6 * static_cast<double>(bytes) / bytes_per_second_));
    return free;
  }

  void match(Line& line, Direction direction) {
    while (!line.sent.empty() && !line.wanted.empty()) {
      Transfer& from = *line.sent.front();
      Transfer& to = *line.wanted.front();
      PIPEWRIGHT_CHECK(from.bytes <= to.bytes, "a message of ", from.bytes, " bytes where ",
                       to.bytes, " were asked for");
      if (from.bytes > 0) std::memcpy(to.to, from.from, from.bytes);
      to.bytes = from.bytes;
      from.complete = to.complete = true;
      from.arrives = to.arrives = carry(direction, from.bytes);
      line.sent.pop_front();
      line.wanted.pop_front();
    }
  }

  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, Line> lines_;
  std::map<Direction, std::deque<std::pair<TimePoint, std::string>>> notes_;
  std::map<Direction, TimePoint> free_;  ///< when all that was sent has arrived
  double bytes_per_second_;
  std::vector<std::int64_t> rounds_;  ///< of each keeper
  std::set<int> closed_;
};

class MemoryWire final : public Wire {
 public:
  MemoryWire(std::shared_ptr<Exchange> exchange, int rank, int size)
      : exchange_(std::move(exchange)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Ticket send(int peer, int channel, const void* data, std::size_t bytes) override {
    const auto transfer = std::make_shared<Exchange::Transfer>();
    transfer->from = static_cast<const std::byte*>(data);
    transfer->bytes = bytes;
    exchange_->send(rank_, peer, channel, transfer);
    return keep(transfer);
  }
  Ticket receive(int peer, int channel, void* data, std::size_t bytes) override {
    const auto transfer = std::make_shared<Exchange::Transfer>();
    transfer->to = static_cast<std::byte*>(data);
    transfer->bytes = bytes;
    exchange_->receive(peer, rank_, channel, transfer);
    return keep(transfer);
  }
  std::optional<std::size_t> done(Ticket ticket) override {
    const auto bytes = exchange_->done(transfers_.at(ticket));
    if (bytes) transfers_.erase(ticket);
    return bytes;
  }
  void tell(int peer, std::string_view note) override {
    exchange_->tell(rank_, peer, std::string(note));
  }
  std::optional<Note> hear() override { return exchange_->hear(rank_); }
  bool closed() override { return exchange_->closed(rank_); }
  void abort(int) override { throw std::logic_error("a test ended its process"); }

 private:
  Ticket keep(Exchange::Handle transfer) {
    transfers_.emplace(++tickets_, std::move(transfer));
    return tickets_;
  }

  std::shared_ptr<Exchange> exchange_;
  int rank_, size_;
  std::map<Ticket, Exchange::Handle> transfers_;
  Ticket tickets_ = 0;
};

}  // namespace

TimePoint virtual_now() {
  return TimePoint(virtual_rounds.load() * kRound);
}

std::vector<std::unique_ptr<Wire>> memory_wires(int size, double bytes_per_second) {
  const auto exchange = std::make_shared<Exchange>(size, bytes_per_second);
  std::vector<std::unique_ptr<Wire>> wires;
  for (int rank = 0; rank < size; ++rank)
    wires.push_back(std::make_unique<MemoryWire>(exchange, rank, size));
  return wires;
}

std::vector<Ended> play(int size, const std::function<void(WireTeam&)>& process,
                        TeamPatience patience, const std::atomic<bool>* stop,
                        const DeviceGroups::Find& nccl, double bytes_per_second) {
  auto wires = memory_wires(size, bytes_per_second);
  std::vector<Ended> ended(static_cast<std::size_t>(size));
  // A team that failed lives on until all have: as a process that tells the others.
  std::vector<std::unique_ptr<WireTeam>> teams(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < teams.size(); ++rank)
    teams[rank] = std::make_unique<WireTeam>(std::move(wires[rank]), stop, patience, nccl);
  for (std::size_t rank = 0; rank < teams.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        process(*teams[rank]);
      } catch (const Error& error) {
        ended[rank].error = std::make_unique<Error>(teams[rank]->agree_on(error));
        ended[rank].spoke = teams[rank]->reports_to_user();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return ended;
}

}  // namespace pipewright::test
