/// Pieces of messages between the processes of one run, as MPI gives them: between two processes
/// and on one channel they arrive in the order they were sent. Nothing here waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

/// Used by one thread at a time. Everything throws Error{Worker} where the wire itself fails.
class Wire {
 public:
  using Ticket = std::int32_t;  ///< a piece on its way

  /// Longest note, in bytes: what an eager MPI message holds.
  static constexpr std::size_t kLongestNote = 2048;
  /// Most bytes of a piece. MPI says only that all of a piece has gone or come, so this is how fine
  /// the progress of a large message can be seen.
  static constexpr std::size_t kLargestPiece = std::size_t{512} << 10;

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// The memory must stay as it is until done().
  virtual Ticket send(int peer, int channel, const void* data, std::size_t bytes) = 0;
  /// Room for `bytes`; the piece may have fewer.
  virtual Ticket receive(int peer, int channel, void* data, std::size_t bytes) = 0;
  /// The bytes that went or came, once all have: the ticket is spent then. Also drives progress.
  virtual std::optional<std::size_t> done(Ticket ticket) = 0;

  /// A short text to a peer, beside all channels. Lost if the peer is.
  virtual void tell(int peer, std::string_view note) = 0;
  struct Note {
    int from = 0;
    std::string text;
  };
  virtual std::optional<Note> hear() = 0;

  /// Collective, when everybody is done: no process may vanish from under another.
  virtual void close() = 0;
  /// Ends all processes of the run, whatever they do. Does not return.
  virtual void abort(int exit_code) = 0;
};

}  // namespace pipewright
