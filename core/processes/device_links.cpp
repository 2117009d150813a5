// SPDX-License-Identifier: Apache-2.0
#include <c10/core/StreamGuard.h>

#include <deque>
#include <map>

#include "core/processes/announcement.h"
#include "core/processes/channels.h"
#include "core/processes/early_messages.h"
#include "core/processes/wire_links.h"
#include "core/runtime/devices/device_stream.h"
#include "core/runtime/devices/parcel.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

std::vector<DeviceGroup::Transfer> with(int member, const Tensors& tensors) {
  std::vector<DeviceGroup::Transfer> transfers;
  for (const at::Tensor& tensor : tensors)
    if (tensor.nbytes() > 0) transfers.emplace_back(member, tensor);
  return transfers;
}

class DeviceSender final : public LinkSender {
 public:
  DeviceSender(WireTeam& team, DeviceGroup& group, int peer, int capacity)
      : team_(team),
        group_(group),
        peer_(peer),
        capacity_(capacity),
        stream_(link_stream(team.rank(), peer, group.device())) {}

  void send(int link, Tensors message) override {
    std::deque<c10::Event>& on_their_way = on_their_way_[link];
    if (capacity_ > 0 && std::ssize(on_their_way) >= capacity_) {
      team_.wait_for_device([&] { return on_their_way.front().query(); });
      on_their_way.pop_front();
    }
    announce(link, shapes_of(message));
    recorded_on(current_stream(group_.device())).block(stream_);
    for (const at::Tensor& tensor : message) record_use(tensor, stream_);
    const c10::StreamGuard switched(stream_);
    group_.exchange(with(1, message), {});
    if (capacity_ > 0) on_their_way.push_back(recorded_on(stream_));
  }

  void finish() override {
    const c10::Event sent = recorded_on(stream_);
    team_.wait_for_device([&] { return sent.query(); });
  }

 private:
  void announce(int link, Shapes shapes) {
    const bool known = shapes == last_;
    team_.send(peer_, kShapesChannel, known ? announcement(link) : announcement(link, shapes));
    last_ = std::move(shapes);
  }

  WireTeam& team_;
  DeviceGroup& group_;
  int peer_, capacity_;
  c10::Stream stream_;
  Shapes last_;
  std::map<int, std::deque<c10::Event>> on_their_way_;  ///< messages in flight, by link
};

/// The sender announces a message just before it queues it, so the receiving stream waits for the
/// sender's device at most.
class DeviceReceiver final : public LinkReceiver {
 public:
  DeviceReceiver(WireTeam& team, DeviceGroup& group, int peer)
      : team_(team),
        group_(group),
        peer_(peer),
        stream_(link_stream(peer, team.rank(), group.device())) {}

  Tensors receive(const Port& port) override {
    // The event orders an early message, too: everything queued on the stream before is done.
    Parcel parcel{early_.find(port.link, port.turn, [this] { return take(); }),
                  recorded_on(stream_)};
    return arrive(std::move(parcel));
  }

 private:
  /// The next message, with its link.
  std::pair<int, Tensors> take() {
    const at::Tensor numbers = room_for_announcement();
    if (team_.wait(team_.receive(peer_, kShapesChannel, numbers)) > sizeof(std::int64_t))
      last_ = announced_shapes(numbers);
    const c10::StreamGuard switched(stream_);
    Tensors room = room_for(last_, group_.device());
    group_.exchange({}, with(0, room));
    return {announced_link(numbers), std::move(room)};
  }

  WireTeam& team_;
  DeviceGroup& group_;
  int peer_;
  c10::Stream stream_;
  EarlyMessages early_;
  Shapes last_;
};

}  // namespace

std::unique_ptr<LinkSender> device_sender(WireTeam& team, DeviceGroup& group, int peer,
                                          int capacity) {
  return std::make_unique<DeviceSender>(team, group, peer, capacity);
}

std::unique_ptr<LinkReceiver> device_receiver(WireTeam& team, DeviceGroup& group, int peer) {
  return std::make_unique<DeviceReceiver>(team, group, peer);
}

}  // namespace pipewright
