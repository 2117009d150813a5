// SPDX-License-Identifier: Apache-2.0
/// The links and buses of some hardware while a schedule runs on it: when each message arrives, and
/// how much each link and bus has carried.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "core/simulation/hardware.h"

namespace pipewright {

/// The messages that a link or a bus has carried.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  double busy = 0;  ///< s
};

/// A message on its way over a link.
struct SentMessage {
  double begin = 0, arrived = 0;  ///< s
  std::int64_t bytes = 0;
};

struct Delivery {
  double sent = 0;     ///< when the sender is done with it
  double arrived = 0;  ///< when the receiver has it
};

/// A message posted on hardware with buses or a rendezvous. The sender chooses `tag`, and gets it
/// back with the delivery.
struct PostedMessage {
  int link = 0;
  double ready = 0;
  std::int64_t bytes = 0;
  std::int64_t tag = 0;
};

class Network {
 public:
  /// `transfers`: whether links keep each message that they carry.
  explicit Network(const Hardware& hardware, bool transfers = false);

  /// The link between two workers; created on first use.
  int link(int from, int to);

  /// Whether links share buses, or messages wait for their receives. Then messages must be posted,
  /// and next() returns them in order of time.
  bool must_post() const { return !buses_.empty() || rendezvous(); }
  bool rendezvous() const { return hardware_.receives == Receives::Rendezvous; }
  /// Carries a message that is ready at time `ready`, if none need be posted. Each sender's
  /// messages must come in its own order; with Receives::ProgramOrder each receiver's.
  Delivery carry(int link, double ready, std::int64_t bytes);
  void post(const PostedMessage& message);
  /// With a rendezvous: the receiver is ready for the link's next message at that time.
  void receive(int link, double time);
  /// The link of the posted message that the link's next one cannot overtake, because a device
  /// sends only so many at once; `link` itself if there is no other.
  int blocking_link(int link) const;
  /// The posted message that begins next, and its delivery; of those that begin at the same time
  /// the one posted first or, with a rendezvous, that of the first sender, then receiver. Messages
  /// posted later must not be ready before that.
  std::optional<std::pair<PostedMessage, Delivery>> next();

  /// When next() will begin a message; ∞: none is posted.
  double next_time() const;

  /// Seconds from `ready` to the end of a ring all-reduce of so many bytes among these workers.
  /// All-reduces that share a bus use it one after the other, in the order of the calls, which is
  /// that of time. Messages and bytes are counted, but links and buses stay free for messages.
  double all_reduce(const std::vector<int>& workers, std::int64_t bytes, double ready);

  struct Link {
    int from = 0, to = 0;
    LinkSpeed speed;
    std::vector<int> buses;
    double free = 0;
    int lane = 0;
    std::optional<double> receive;  ///< when the receive of its next message was posted
    Traffic traffic;
    std::vector<SentMessage> transfers;  ///< in order, where they are kept
  };
  const std::vector<Link>& links() const { return links_; }
  const std::vector<Traffic>& buses() const { return traffic_; }

 private:
  /// A queue of messages that begin in order: those of a link or, with few copy engines, those of a
  /// device.
  struct Lane {
    std::deque<PostedMessage> waiting;
    std::vector<double> engines;  ///< when each copy engine is free; empty: unlimited
    double begun = 0;
  };
  struct Turn {
    double time = 0;
    std::int64_t order = 0;
    int lane = 0;
    bool operator>(const Turn& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  double beginning(const Link& link, double ready) const;
  /// Lets the first message of a lane begin, unless it has to wait for its receive.
  void queue_turn(int lane);

  const Hardware& hardware_;
  const bool keeps_transfers_;
  std::unordered_map<std::uint64_t, int> known_;
  std::vector<Link> links_;
  std::vector<Lane> lanes_;
  std::vector<int> lane_of_sender_;  ///< used with few copy engines
  const std::vector<Bus>& buses_;
  std::vector<double> bus_free_;     ///< when each bus has served the messages given to it
  std::vector<double> bus_reduced_;  ///< the same of all-reduces
  std::vector<double>
      wire_free_;                 ///< [device] of the one wire into it, with Receives::ProgramOrder
  std::vector<Traffic> traffic_;  ///< what each bus has carried
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::int64_t posted_ = 0;
};

}  // namespace pipewright
