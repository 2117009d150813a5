// SPDX-License-Identifier: Apache-2.0
/// The two ends of a link between processes. A link's messages arrive in their turn, so they carry
/// no names. There are two kinds of links:
///  - Through the host, over the team's wire. A message is the contiguous memory of its tensors,
///  one
///    part each. The receiver posts its receives ahead, in the shapes of the link's previous
///    message. If the shapes differ (the first message, a smaller last mini-batch), the sender
///    declines those receives and sends an announcement of the new shapes first.
///  - Between devices, over a DeviceGroup. The sender announces every message over the wire; the
///    announcement names the link, and the shapes if they are not those of the previous message.
#pragma once

#include <memory>
#include <vector>

#include "core/nn/layer.h"
#include "core/processes/wire_team.h"
#include "core/runtime/devices/device_group.h"

namespace pipewright {

class LinkSender {
 public:
  virtual ~LinkSender() = default;
  /// Sends a message. Blocks while the link's capacity is used up.
  virtual void send(int link, Tensors message) = 0;
  /// Blocks until devices have sent all messages.
  virtual void finish() {}
};

class LinkReceiver {
 public:
  virtual ~LinkReceiver() = default;
  /// Blocks until the message has arrived or, between devices, is in flight.
  virtual Tensors receive(const Port& port) = 0;
};

/// Sender of one link, through the host. `messages`: how many will be sent; `capacity`: how many
/// may be in flight (0: any number).
std::unique_ptr<LinkSender> host_sender(WireTeam& team, int peer, std::int64_t messages,
                                        int capacity);
/// Receiver of one link, through the host. `messages`: how many will be sent.
std::unique_ptr<LinkReceiver> host_receiver(WireTeam& team, int link, int peer,
                                            std::int64_t messages);

/// Sender of all links to a peer, between devices. `capacity`: that of each link.
std::unique_ptr<LinkSender> device_sender(WireTeam& team, DeviceGroup& group, int peer,
                                          int capacity);
/// Receiver of all links from a peer, between devices.
std::unique_ptr<LinkReceiver> device_receiver(WireTeam& team, DeviceGroup& group, int peer);

}  // namespace pipewright
