// SPDX-License-Identifier: Apache-2.0
// The wire over Open MPI (or another MPI). This is the only file that includes MPI. It is a module
// of its own, loaded for `execution: mpi`. It needs thread level MPI_THREAD_SERIALIZED.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <list>
#include <vector>

#include "core/base/error.h"
#include "core/processes/wire.h"

namespace pipewright {
namespace {

constexpr int kNoteTag = 0;

/// Throws an Error that says what failed and why, unless `code` is MPI_SUCCESS.
void expect(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, reason, &length);
  throw Error(ErrorKind::Worker, concat("MPI cannot ", what, ": ", std::string(reason)));
}

/// Unlinks Open MPI's shared memory, so that nothing of it remains if all processes are killed. It
/// is a file that each process of a machine has mapped; only files that this process has mapped are
/// touched. Returns the names that this process has removed.
std::vector<std::filesystem::path> remove_names_of_shared_memory() {
  std::vector<std::filesystem::path> removed;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos) continue;
    const std::filesystem::path file = line.substr(path);
    const std::string name = file.filename().string();
    const bool segment = name.starts_with("vader_segment.") || name.starts_with("sm_segment.");
    if (segment && ::unlink(file.c_str()) == 0) removed.push_back(file);
  }
  return removed;
}

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
    for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF})
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);  // duplicates inherit it
    expect(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "say the rank");
    expect(MPI_Comm_size(MPI_COMM_WORLD, &size_), "say the size");
    expect(MPI_Comm_dup(MPI_COMM_WORLD, &messages_), "make a communicator");
    expect(MPI_Comm_dup(MPI_COMM_WORLD, &notes_), "make a communicator");
    meet_everybody();
    names_ = remove_names_of_shared_memory();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket send(int peer, int channel, const void* data, std::size_t bytes) override {
    const Ticket ticket = take_ticket();
    expect(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, channel, messages_,
                     &request(ticket)),
           "send a message");
    return ticket;
  }

  Ticket receive(int peer, int channel, void* data, std::size_t bytes) override {
    const Ticket ticket = take_ticket();
    expect(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, channel, messages_,
                     &request(ticket)),
           "receive a message");
    return ticket;
  }

  std::optional<std::size_t> done(Ticket ticket) override {
    int complete = 0, count = 0;
    MPI_Status status;
    expect(MPI_Test(&request(ticket), &complete, &status), "complete a message");
    if (complete == 0) return std::nullopt;
    expect(MPI_Get_count(&status, MPI_BYTE, &count), "count a message's bytes");
    free_.push_back(ticket);
    return static_cast<std::size_t>(std::max(count, 0));
  }

  void tell(int peer, std::string_view note) override {
    PIPEWRIGHT_CHECK(note.size() <= kLongestNote, note.size(), " bytes");
    told_.remove_if([](Told& old) {
      int complete = 0;
      expect(MPI_Test(&old.request, &complete, MPI_STATUS_IGNORE), "complete a note");
      return complete != 0;
    });
    Told& told = told_.emplace_back(Told{std::string(note), MPI_REQUEST_NULL});
    expect(MPI_Isend(told.text.data(), static_cast<int>(told.text.size()), MPI_BYTE, peer, kNoteTag,
                     notes_, &told.request),
           "send a note");
  }

  std::optional<Note> hear() override {
    int there = 0, count = 0;
    MPI_Message message;
    MPI_Status status;
    // Open MPI looks first and receives afterwards, so the second look finds what has come since
    // the last one.
    for (int looks = 0; there == 0 && looks < 2; ++looks)
      expect(MPI_Improbe(MPI_ANY_SOURCE, kNoteTag, notes_, &there, &message, &status),
             "look for notes");
    if (there == 0) return std::nullopt;
    expect(MPI_Get_count(&status, MPI_BYTE, &count), "count a note's bytes");
    Note note{status.MPI_SOURCE, std::string(static_cast<std::size_t>(count), '\0')};
    expect(MPI_Mrecv(note.text.data(), count, MPI_BYTE, &message, &status), "receive a note");
    return note;
  }

  bool closed() override {
    if (!met_at_end()) return false;
    if (++meetings_ == 1) {  // from here on nobody sends notes
      for (Told& told : told_)
        expect(MPI_Wait(&told.request, MPI_STATUS_IGNORE), "complete a note");
      // MPI unlinks its shared memory at the end, and complains if a name is missing.
      for (const std::filesystem::path& name : names_)
        ::close(::open(name.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      return false;
    }
    while (hear()) {
    }
    expect(MPI_Finalize(), "end");
    return true;
  }

  void abort(int exit_code) override {
    // MPI_Abort waits for mpirun, which may wait for a machine that no longer answers.
    constexpr unsigned kSeconds = 3;
    static volatile int code_of_end = 0;
    code_of_end = exit_code;
    std::signal(SIGALRM, [](int) { ::_exit(code_of_end); });
    ::alarm(kSeconds);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    ::_exit(exit_code);
  }

 private:
  struct Told {
    std::string text;
    MPI_Request request;
  };

  /// Exchanges a byte with every process, so that all have mapped each other's shared memory, even
  /// if MPI maps it on first use.
  void meet_everybody() {
    std::vector<MPI_Request> requests(2 * static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    std::vector<char> bytes(static_cast<std::size_t>(size_));
    const char byte = 0;
    for (int peer = 0; peer < size_; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      expect(MPI_Irecv(&bytes[p], 1, MPI_BYTE, peer, 0, messages_, &requests[2 * p]), "begin");
      expect(MPI_Isend(&byte, 1, MPI_BYTE, peer, 0, messages_, &requests[2 * p + 1]), "begin");
    }
    expect(MPI_Waitall(2 * size_, requests.data(), MPI_STATUSES_IGNORE), "begin");
    expect(MPI_Barrier(messages_), "begin");
  }

  /// Whether all processes have begun this meeting at the end.
  bool met_at_end() {
    if (meeting_ == MPI_REQUEST_NULL) expect(MPI_Ibarrier(messages_, &meeting_), "end");
    int met = 0;
    expect(MPI_Test(&meeting_, &met, MPI_STATUS_IGNORE), "end");
    return met != 0;
  }

  MPI_Request& request(Ticket ticket) { return requests_[static_cast<std::size_t>(ticket)]; }

  Ticket take_ticket() {
    if (free_.empty()) {
      requests_.push_back(MPI_REQUEST_NULL);
      return static_cast<Ticket>(requests_.size()) - 1;
    }
    const Ticket ticket = free_.back();
    free_.pop_back();
    return ticket;
  }

  int rank_ = 0, size_ = 1;
  MPI_Comm messages_ = MPI_COMM_NULL, notes_ = MPI_COMM_NULL;
  std::vector<MPI_Request> requests_;
  std::vector<Ticket> free_;
  std::list<Told> told_;
  std::vector<std::filesystem::path> names_;  ///< of shared memory, unlinked by this process
  MPI_Request meeting_ = MPI_REQUEST_NULL;    ///< of all processes at the end
  int meetings_ = 0;
};

}  // namespace
}  // namespace pipewright

extern "C" pipewright::Wire* pipewright_open_wire() {
  return new pipewright::MpiWire;
}
