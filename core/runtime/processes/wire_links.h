/// The two ends of a link between processes. Through the host, over the team's wire: a message is
/// the contiguous memory of its tensors, one part each, and nothing else; the receiver has asked
/// for it beforehand, in the shape of the link's message before. Where the shape is another (the
/// first message, a smaller last mini-batch), what was asked for is declined, and an
/// announcement of the new shapes goes ahead. Between devices, in a group of theirs: a note goes
/// ahead of each message, empty where the shapes are the last message's. Both sides know the order
/// of messages from the schedule, so none carries a name.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/devices/device_group.h"
#include "core/runtime/processes/wire_team.h"

namespace pipewright {

class LinkSender {
 public:
  virtual ~LinkSender() = default;
  /// Blocks where the link's capacity is used up.
  virtual void send(int link, Tensors message) = 0;
  /// Blocks until devices have sent what they were given.
  virtual void finish() {}
};

class LinkReceiver {
 public:
  virtual ~LinkReceiver() = default;
  /// Blocks until the message has come or, between devices, is on its way.
  virtual Tensors receive(int message) = 0;
};

/// Of one link; `messages`: how many will be sent. `capacity`: most on their way, 0: any number.
std::unique_ptr<LinkSender> host_sender(WireTeam& team, int peer, int messages, int capacity);
/// `order`: the link's messages as they are sent.
std::unique_ptr<LinkReceiver> host_receiver(WireTeam& team, int link, int peer,
                                            std::vector<int> order);

/// Of all links to a peer. `capacity`: of each.
std::unique_ptr<LinkSender> device_sender(WireTeam& team, DeviceGroup& group, int peer,
                                          int capacity);
/// Of all links from a peer. `order`: their messages as they are sent.
std::unique_ptr<LinkReceiver> device_receiver(WireTeam& team, DeviceGroup& group, int peer,
                                              std::vector<int> order);

}  // namespace pipewright
