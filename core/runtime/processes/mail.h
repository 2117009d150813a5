/// Messages of any size over a wire. They go in pieces, so that it can be seen that a long message
/// makes progress; of one channel as many pieces at a time as its link takes in a moment, so that
/// a slow link is not asked to carry all of them at once.
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

#include "core/runtime/processes/wire.h"

namespace pipewright {

/// Used by one thread at a time. Messages are contiguous CPU tensors, which are kept as long as the
/// wire needs their memory. Throws what the wire throws.
class Mail {
 public:
  using Ticket = std::int64_t;  ///< of a message

  using Clock = std::chrono::steady_clock;

  /// The wire outlives it. `now`: the clock that says how fast links are.
  explicit Mail(Wire& wire, Clock::time_point (*now)() = &Clock::now);

  /// The messages on a channel to a peer go in the order of these calls.
  Ticket send(int peer, int channel, at::Tensor tensor);
  /// Sends as many pieces as receive() waits for with room for `bytes`, all empty.
  void decline(int peer, int channel, std::size_t bytes);
  /// Whether a message that was sent has gone.
  bool gone(Ticket ticket) const { return !going_.contains(ticket); }
  /// Whether any message has not.
  bool sending() const { return !going_.empty(); }
  /// Whether pieces are waiting for others to have gone.
  bool has_backlog() const { return backlog_; }

  /// Asks for a message: what was sent has as many bytes, or was declined, or is of one piece as is
  /// the room for it.
  Ticket receive(int peer, int channel, at::Tensor tensor);
  /// The bytes that came, once all have: the ticket is spent then.
  std::optional<std::size_t> come(Ticket ticket);

  /// Looks what has gone, and sends what comes next.
  void advance_sends();
  /// Looks what has come.
  void advance_receives();

  /// How many pieces have gone or come, and from a peer.
  std::int64_t moved() const { return moved_; }
  std::int64_t come_from(int peer) const { return come_from_[static_cast<std::size_t>(peer)]; }
  /// Whether a part of a message from the peer has come, and more of it is to come.
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
  /// What goes to a peer on a channel, oldest first.
  struct Lane {
    std::deque<Outgoing> messages;  ///< never moved
    std::deque<Piece> under_way;
    std::size_t begun = 0;  ///< messages whose pieces are all under way or gone
    std::size_t bytes_under_way = 0, window = 2 * Wire::kLargestPiece;
    std::size_t measured = 0;  ///< bytes gone since then
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
