// The wire over Open MPI (or another MPI): the only file that knows it, in a module of its own that
// is loaded when `execution: mpi` asks for it. MPI_THREAD_SERIALIZED.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <vector>

#include "core/base/error.h"
#include "core/runtime/wire.h"

namespace pipewright {
namespace {

constexpr int kNoteTag = 0;

class MpiWire final : public Wire {
 public:
  MpiWire() {
    int begun = 0, level = 0;
    MPI_Initialized(&begun);
    if (begun != 0)
      MPI_Query_thread(&level);
    else
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    PIPEWRIGHT_CHECK(level >= MPI_THREAD_SERIALIZED, "MPI gives thread level ", level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_dup(MPI_COMM_WORLD, &messages_);
    MPI_Comm_dup(MPI_COMM_WORLD, &notes_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket send(int peer, int channel, const void* data, std::size_t bytes) override {
    const auto* const from = static_cast<const std::byte*>(data);
    return in_parts(bytes, [&](std::size_t begin, int count, MPI_Request* request) {
      MPI_Isend(from + begin, count, MPI_BYTE, peer, channel, messages_, request);
    });
  }

  Ticket receive(int peer, int channel, void* data, std::size_t bytes) override {
    auto* const to = static_cast<std::byte*>(data);
    return in_parts(bytes, [&](std::size_t begin, int count, MPI_Request* request) {
      MPI_Irecv(to + begin, count, MPI_BYTE, peer, channel, messages_, request);
    });
  }

  std::optional<std::size_t> done(Ticket ticket) override {
    Transfer& transfer = transfers_[static_cast<std::size_t>(ticket)];
    while (!transfer.requests.empty()) {
      int complete = 0;
      MPI_Status status;
      MPI_Test(&transfer.requests.back(), &complete, &status);
      if (complete == 0) return std::nullopt;
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      transfer.bytes += static_cast<std::size_t>(count > 0 ? count : 0);
      transfer.requests.pop_back();
    }
    free_.push_back(ticket);
    return transfer.bytes;
  }

  void tell(int peer, std::string_view note) override {
    PIPEWRIGHT_CHECK(note.size() <= kLongestNote, note.size(), " bytes");
    told_.remove_if([](Told& old) {
      int complete = 0;
      MPI_Test(&old.request, &complete, MPI_STATUS_IGNORE);
      return complete != 0;
    });
    Told& told = told_.emplace_back(Told{std::string(note), MPI_REQUEST_NULL});
    MPI_Isend(told.text.data(), static_cast<int>(told.text.size()), MPI_BYTE, peer, kNoteTag,
              notes_, &told.request);
  }

  std::optional<Note> hear() override {
    int there = 0;
    MPI_Message message;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, kNoteTag, notes_, &there, &message, &status);
    if (there == 0) return std::nullopt;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    Note note{status.MPI_SOURCE, std::string(static_cast<std::size_t>(count), '\0')};
    MPI_Mrecv(note.text.data(), count, MPI_BYTE, &message, &status);
    return note;
  }

  void close() override {
    MPI_Barrier(messages_);  // nobody sends notes any more …
    while (hear()) {
    }
    for (Told& told : told_) MPI_Wait(&told.request, MPI_STATUS_IGNORE);
    MPI_Barrier(messages_);
    while (hear()) {
    }
    MPI_Finalize();
  }

  void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    ::_exit(exit_code);
  }

 private:
  struct Transfer {
    std::vector<MPI_Request> requests;
    std::size_t bytes = 0;
  };
  struct Told {
    std::string text;
    MPI_Request request;
  };

  /// MPI counts in int: a large message goes in parts.
  template <class Start>
  Ticket in_parts(std::size_t bytes, const Start& start) {
    const Ticket ticket = take_ticket();
    Transfer& transfer = transfers_[static_cast<std::size_t>(ticket)];
    transfer.bytes = 0;
    std::size_t begin = 0;
    do {
      const std::size_t part = std::min(bytes - begin, kLargestPart);
      start(begin, static_cast<int>(part), &transfer.requests.emplace_back(MPI_REQUEST_NULL));
      begin += part;
    } while (begin < bytes);
    return ticket;
  }

  Ticket take_ticket() {
    if (free_.empty()) {
      transfers_.emplace_back();
      return static_cast<Ticket>(transfers_.size()) - 1;
    }
    const Ticket ticket = free_.back();
    free_.pop_back();
    return ticket;
  }

  int rank_ = 0, size_ = 1;
  MPI_Comm messages_ = MPI_COMM_NULL, notes_ = MPI_COMM_NULL;
  std::vector<Transfer> transfers_;
  std::vector<Ticket> free_;
  std::list<Told> told_;
};

}  // namespace
}  // namespace pipewright

extern "C" pipewright::Wire* pipewright_open_wire() {
  return new pipewright::MpiWire;
}
