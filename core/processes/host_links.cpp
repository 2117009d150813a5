// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>

#include "core/processes/announcement.h"
#include "core/processes/channels.h"
#include "core/processes/early_messages.h"
#include "core/processes/wire_links.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Whether the receiver posts receives for the next message before it is announced. It does not if
/// a tensor is empty: that could not be told from a declined receive.
bool can_be_asked_for(const Tensors& message) {
  return std::ranges::all_of(message, [](const at::Tensor& tensor) { return tensor.nbytes() > 0; });
}

class HostSender final : public LinkSender {
 public:
  HostSender(WireTeam& team, int peer, std::int64_t messages, int capacity)
      : team_(team), peer_(peer), left_(messages), capacity_(capacity) {}

  void send(int link, Tensors message) override {
    if (capacity_ > 0 && std::ssize(on_their_way_) >= capacity_) {
      team_.wait_until_gone(on_their_way_.front());
      on_their_way_.pop_front();
    }
    for (at::Tensor& tensor : message)
      if (!tensor.is_cpu()) tensor = tensor.cpu();
    Shapes shapes = shapes_of(message);
    if (shapes != asked_for_ || shapes.empty()) {  // no receive is posted for no tensors
      for (const Shape& shape : asked_for_)
        team_.decline(peer_, link_channel(link), bytes_of(shape));
      team_.send(peer_, announcement_channel(link), announcement(link, shapes));
    }
    asked_for_.clear();
    if (--left_ > 0 && can_be_asked_for(message)) asked_for_ = std::move(shapes);
    Mail::Ticket last = 0;
    for (at::Tensor& tensor : message)
      last = team_.send(peer_, link_channel(link), std::move(tensor));
    if (capacity_ > 0) on_their_way_.push_back(last);
  }

 private:
  WireTeam& team_;
  int peer_;
  std::int64_t left_;
  int capacity_;
  Shapes asked_for_;
  std::deque<Mail::Ticket> on_their_way_;
};

class HostReceiver final : public LinkReceiver {
 public:
  HostReceiver(WireTeam& team, int link, int peer, std::int64_t messages)
      : team_(team), link_(link), peer_(peer), left_(messages) {}

  Tensors receive(const Port& port) override {
    return early_.find(link_, port.turn, [this] { return std::pair(link_, take()); });
  }

 private:
  Tensors take() {
    Tensors message = std::exchange(asked_for_, {});
    bool came = !message.empty();
    for (std::size_t i = 0; i < message.size(); ++i) came &= team_.wait(tickets_[i]) > 0;
    if (!came) message = take_announced();
    tickets_.clear();
    if (--left_ > 0 && can_be_asked_for(message)) asked_for_ = ask_for(shapes_of(message));
    return message;
  }

  Tensors take_announced() {
    const at::Tensor numbers = room_for_announcement();
    team_.wait(team_.receive(peer_, announcement_channel(link_), numbers));
    tickets_.clear();
    Tensors message = ask_for(announced_shapes(numbers));
    for (const Mail::Ticket ticket : tickets_) team_.wait(ticket);
    return message;
  }

  Tensors ask_for(const Shapes& shapes) {
    Tensors room = room_for(shapes, at::kCPU);
    for (const at::Tensor& tensor : room)
      tickets_.push_back(team_.receive(peer_, link_channel(link_), tensor));
    return room;
  }

  WireTeam& team_;
  int link_, peer_;
  std::int64_t left_;
  EarlyMessages early_;
  Tensors asked_for_;
  std::vector<Mail::Ticket> tickets_;
};

}  // namespace

std::unique_ptr<LinkSender> host_sender(WireTeam& team, int peer, std::int64_t messages,
                                        int capacity) {
  return std::make_unique<HostSender>(team, peer, messages, capacity);
}

std::unique_ptr<LinkReceiver> host_receiver(WireTeam& team, int link, int peer,
                                            std::int64_t messages) {
  return std::make_unique<HostReceiver>(team, link, peer, messages);
}

}  // namespace pipewright
