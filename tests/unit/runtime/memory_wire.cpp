#include "tests/unit/runtime/memory_wire.h"

#include <cstring>
#include <deque>
#include <map>
#include <thread>

namespace pipewright::test {
namespace {

/// What is between the ends.
class Exchange {
 public:
  struct Transfer {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    bool complete = false;
  };
  using Handle = std::shared_ptr<Transfer>;

  void send(int from, int to, int channel, const Handle& transfer) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[{from, to, channel}];
    line.sent.push_back(transfer);
    match(line);
  }
  void receive(int from, int to, int channel, const Handle& transfer) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[{from, to, channel}];
    line.wanted.push_back(transfer);
    match(line);
  }
  std::optional<std::size_t> done(const Handle& transfer) {
    const std::lock_guard lock(mutex_);
    if (!transfer->complete) return std::nullopt;
    return transfer->bytes;
  }
  void tell(int from, int to, std::string note) {
    const std::lock_guard lock(mutex_);
    notes_[to].push_back({from, std::move(note)});
  }
  std::optional<Wire::Note> hear(int to) {
    const std::lock_guard lock(mutex_);
    if (notes_[to].empty()) return std::nullopt;
    Wire::Note note = std::move(notes_[to].front());
    notes_[to].pop_front();
    return note;
  }

 private:
  struct Line {
    std::deque<Handle> sent, wanted;
  };

  static void match(Line& line) {
    while (!line.sent.empty() && !line.wanted.empty()) {
      Transfer& from = *line.sent.front();
      Transfer& to = *line.wanted.front();
      PIPEWRIGHT_CHECK(from.bytes <= to.bytes, "a message of ", from.bytes, " bytes where ",
                       to.bytes, " were asked for");
      if (from.bytes > 0) std::memcpy(to.to, from.from, from.bytes);
      to.bytes = from.bytes;
      from.complete = to.complete = true;
      line.sent.pop_front();
      line.wanted.pop_front();
    }
  }

  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, Line> lines_;
  std::map<int, std::deque<Wire::Note>> notes_;
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
  void close() override {}
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

std::vector<std::unique_ptr<Wire>> memory_wires(int size) {
  const auto exchange = std::make_shared<Exchange>();
  std::vector<std::unique_ptr<Wire>> wires;
  for (int rank = 0; rank < size; ++rank)
    wires.push_back(std::make_unique<MemoryWire>(exchange, rank, size));
  return wires;
}

std::vector<Ended> play(int size, const std::function<void(WireTeam&)>& process,
                        TeamPatience patience, const std::atomic<bool>* stop,
                        const DeviceGroups::Find& nccl) {
  auto wires = memory_wires(size);
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
        ended[rank].error = std::make_unique<Error>(teams[rank]->settle(error));
        ended[rank].spoke = teams[rank]->speaks();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return ended;
}

}  // namespace pipewright::test
