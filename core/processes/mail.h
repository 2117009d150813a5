// SPDX-License-Identifier: Apache-2.0
/// Messages of any size over a wire. They are sent in pieces, so that the progress of a long
/// message can be seen. Each channel has a window of bytes in flight that adapts to the speed of
/// its link, so that a slow link is not flooded.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/processes/wire.h"

namespace pipewright {

/// Not thread-safe. Messages are contiguous CPU tensors, kept as long as the wire needs their
/// memory. Every function throws what the wire throws.
class Mail {
 public:
  using Ticket = std::int64_t;  ///< handle of a message

  using Clock = std::chrono::steady_clock;

  /// The wire must outlive it. `now`: the clock that measures the speed of links.
  explicit Mail(Wire& wire, Clock::time_point (*now)() = &Clock::now);

  /// Queues a message. Those on one channel to one peer are sent in the order of these calls.
  Ticket send(int peer, int channel, at::Tensor tensor);
  /// Ends the peer's receive() for a message of `bytes` bytes: sends as many pieces, all empty.
  void decline(int peer, int channel, std::size_t bytes);
  /// Whether the wire has sent the whole message, so that its memory is free.
  bool gone(Ticket ticket) const { return !going_.contains(ticket); }
  /// Whether any message has not been sent completely.
  bool sending() const { return !going_.empty(); }
  /// Whether pieces wait because a window is full.
  bool has_backlog() const { return backlog_; }

  /// Posts a receive into `tensor`. The message must have as many bytes, or be declined, or both
  /// the message and the tensor must fit into one piece.
  Ticket receive(int peer, int channel, at::Tensor tensor);
  /// The size of the message in bytes once it has arrived, which invalidates the ticket.
  std::optional<std::size_t> come(Ticket ticket);

  /// Checks which pieces have been sent, and starts the next ones.
  void advance_sends();
  /// Checks which pieces have arrived.
  void advance_receives();

  /// Number of pieces sent or received so far; come_from() counts those received from a peer.
  std::int64_t moved() const { return moved_; }
  std::int64_t come_from(int peer) const { return come_from_[static_cast<std::size_t>(peer)]; }
  /// Whether a message from the peer has arrived in part.
  bool amid_message_from(int peer) const;

 private:
  struct Outgoing {
    Ticket ticket = 0;
    at::Tensor tensor;
    int pieces = 1, begun = 0, gone = 0;
  };
  struct Piece {
    Wire::Ticket ticket = 0;
    std::size_t bytes = 0;
    Outgoing* message = nullptr;
  };
  /// The send queue of one channel to one peer, oldest message first.
  struct Lane {
    std::deque<Outgoing> messages;  ///< a deque keeps them in place: pieces point to them
    std::deque<Piece> under_way;
    std::size_t begun = 0;  ///< messages whose pieces are all in flight or sent
    std::size_t bytes_under_way = 0, window = 2 * Wire::kLargestPiece;
    std::size_t measured = 0;  ///< bytes sent since the time `since`
    std::optional<Clock::time_point> since;
  };
  struct Incoming {
    int peer = 0;
    at::Tensor tensor;
    std::vector<Wire::Ticket> pieces;
    std::size_t come = 0, bytes = 0;
  };

  Ticket queue(int peer, int channel, Outgoing message);
  void advance(int peer, int channel, Lane& lane);
  void measure(Lane& lane, std::size_t bytes);
  void look_at(Incoming& message);

  Wire& wire_;
  Clock::time_point (*now_)();
  std::map<std::pair<int, int>, Lane> lanes_;  ///< by peer and channel
  std::unordered_set<Ticket> going_;
  std::unordered_map<Ticket, Incoming> incoming_;
  std::vector<std::int64_t> come_from_;
  std::int64_t moved_ = 0;
  Ticket tickets_ = 0;
  bool backlog_ = false;
};

}  // namespace pipewright
