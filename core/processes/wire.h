// SPDX-License-Identifier: Apache-2.0
/// Interface to MPI or a stand-in: moves pieces of messages between the processes of one run.
/// Pieces between two processes on one channel arrive in the order they were sent. No call but
/// close() blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

/// Not thread-safe. Every call throws Error{Worker} if the wire itself fails.
class Wire {
 public:
  using Ticket = std::int32_t;  ///< handle of a piece in flight

  /// Longest note, in bytes; MPI sends a message of this size eagerly.
  static constexpr std::size_t kLongestNote = 2048;
  /// Most bytes of a piece. MPI reports a piece only once it is complete, so this is the
  /// granularity at which the progress of a large message is seen.
  static constexpr std::size_t kLargestPiece = std::size_t{512} << 10;

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts sending a piece. Its memory must stay unchanged until done() returns its size.
  virtual Ticket send(int peer, int channel, const void* data, std::size_t bytes) = 0;
  /// Starts receiving a piece of at most `bytes` bytes into `data`.
  virtual Ticket receive(int peer, int channel, void* data, std::size_t bytes) = 0;
  /// The size of the piece in bytes once it is complete, which invalidates the ticket. The call
  /// also lets MPI make progress.
  virtual std::optional<std::size_t> done(Ticket ticket) = 0;

  /// Sends a note to a peer, outside of all channels. It is lost if the peer has ended.
  virtual void tell(int peer, std::string_view note) = 0;
  struct Note {
    int from = 0;
    std::string text;
  };
  /// The next note that has arrived, if any.
  virtual std::optional<Note> hear() = 0;

  /// Collective, at the regular end, when nobody sends messages any more: whether all processes
  /// have called it, so that none ends while another needs it. It is called until it returns true,
  /// which is the last use of the wire. Only notes about a failure may be sent meanwhile.
  virtual bool closed() = 0;
  /// Ends all processes of the run at once. Does not return.
  virtual void abort(int exit_code) = 0;
};

}  // namespace pipewright
