#include "core/runtime/wire_transport.h"

#include <deque>
#include <map>
#include <numeric>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/runtime/channels.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

/// What an announcement says of one tensor.
struct Shape {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes;
  bool operator==(const Shape&) const = default;
};
using Shapes = std::vector<Shape>;

Shapes shapes_of(const Tensors& message) {
  Shapes shapes;
  for (const at::Tensor& tensor : message)
    shapes.push_back({tensor.scalar_type(), tensor.sizes().vec()});
  return shapes;
}

/// Whether the next message of such shapes is asked for before it is announced.
bool can_be_asked_for(const Tensors& message) {
  return std::ranges::all_of(message, [](const at::Tensor& tensor) {
    return tensor.nbytes() > 0 && tensor.nbytes() <= Wire::kLargestPart;
  });
}

/// An announcement in 64-bit numbers: tensors, then of each its type, dimensions and sizes.
constexpr std::int64_t kAnnouncement = 512;

at::Tensor announcement(const Shapes& shapes) {
  const at::Tensor numbers = at::zeros({kAnnouncement}, at::kLong);
  std::int64_t* next = numbers.mutable_data_ptr<std::int64_t>();
  const std::int64_t* const end = next + kAnnouncement;
  auto put = [&](std::int64_t value) {
    PIPEWRIGHT_CHECK(next < end, "a message of ", shapes.size(),
                     " tensors is too long to announce");
    *next++ = value;
  };
  put(std::ssize(shapes));
  for (const Shape& shape : shapes) {
    put(static_cast<std::int64_t>(shape.type));
    put(std::ssize(shape.sizes));
    for (const std::int64_t size : shape.sizes) put(size);
  }
  return numbers;
}

Shapes announced(const at::Tensor& numbers) {
  const std::int64_t* next = numbers.const_data_ptr<std::int64_t>();
  const std::int64_t* const end = next + kAnnouncement;
  auto take = [&](std::int64_t limit) {
    PIPEWRIGHT_CHECK(next < end && *next >= 0 && *next <= limit, "a damaged announcement");
    return *next++;
  };
  Shapes shapes(static_cast<std::size_t>(take(kAnnouncement)));
  for (Shape& shape : shapes) {
    shape.type = static_cast<at::ScalarType>(take(static_cast<std::int64_t>(at::kBFloat16)));
    shape.sizes.resize(static_cast<std::size_t>(take(kAnnouncement)));
    for (std::int64_t& size : shape.sizes) size = take(std::int64_t{1} << 40);
  }
  return shapes;
}

/// The end of a link that sends.
class Sender {
 public:
  Sender(WireTeam& team, int link, int peer, int messages, int capacity)
      : team_(team), link_(link), peer_(peer), left_(messages), capacity_(capacity) {}

  void send(Tensors message) {
    if (capacity_ > 0 && std::ssize(on_their_way_) >= capacity_) {
      team_.wait_until_gone(on_their_way_.front());
      on_their_way_.pop_front();
    }
    for (at::Tensor& tensor : message)
      if (!tensor.is_cpu()) tensor = tensor.cpu();
    Shapes shapes = shapes_of(message);
    if (shapes != asked_for_) {
      for (std::size_t i = 0; i < asked_for_.size(); ++i)
        team_.send(peer_, link_channel(link_), at::empty({0}, at::kByte));
      team_.send(peer_, announcement_channel(link_), announcement(shapes));
    }
    asked_for_.clear();
    if (--left_ > 0 && can_be_asked_for(message)) asked_for_ = std::move(shapes);
    std::int64_t last = 0;
    for (at::Tensor& tensor : message)
      last = team_.send(peer_, link_channel(link_), std::move(tensor));
    if (capacity_ > 0) on_their_way_.push_back(last);
  }

 private:
  WireTeam& team_;
  int link_, peer_, left_, capacity_;
  Shapes asked_for_;
  std::deque<std::int64_t> on_their_way_;
};

/// The end of a link that receives. `order`: the messages' numbers as they are sent.
class Receiver {
 public:
  Receiver(WireTeam& team, int link, int peer, std::vector<int> order)
      : team_(team), link_(link), peer_(peer), order_(std::move(order)) {}

  Tensors receive(int message) {
    for (;;) {
      if (const auto early = early_.find(message); early != early_.end()) {
        Tensors found = std::move(early->second);
        early_.erase(early);
        return found;
      }
      const int number = order_[next_++];
      Tensors tensors = take();
      if (number == message) return tensors;
      early_.emplace(number, std::move(tensors));
    }
  }

 private:
  Tensors take() {
    Tensors message = std::exchange(asked_for_, {});
    bool came = !message.empty();
    for (std::size_t i = 0; i < message.size(); ++i) came &= team_.wait(tickets_[i]) > 0;
    if (!came) message = take_announced();
    tickets_.clear();
    if (next_ < order_.size() && can_be_asked_for(message)) ask_for(shapes_of(message));
    return message;
  }

  Tensors take_announced() {
    const at::Tensor numbers = at::empty({kAnnouncement}, at::kLong);
    team_.wait(team_.receive(peer_, announcement_channel(link_), numbers));
    Tensors message;
    std::vector<Wire::Ticket> tickets;
    for (const Shape& shape : announced(numbers)) {
      message.push_back(at::empty(shape.sizes, shape.type));
      tickets.push_back(team_.receive(peer_, link_channel(link_), message.back()));
    }
    for (const Wire::Ticket ticket : tickets) team_.wait(ticket);
    return message;
  }

  void ask_for(const Shapes& shapes) {
    for (const Shape& shape : shapes) {
      asked_for_.push_back(at::empty(shape.sizes, shape.type));
      tickets_.push_back(team_.receive(peer_, link_channel(link_), asked_for_.back()));
    }
  }

  WireTeam& team_;
  int link_, peer_;
  std::vector<int> order_;
  std::size_t next_ = 0;
  Tensors asked_for_;
  std::vector<Wire::Ticket> tickets_;
  std::map<int, Tensors> early_;  ///< came before they were wanted
};

/// The sum of one stage's gradients over its replicas: each owns a slice, receives the others'
/// parts of it, adds them in order 0 … R−1, and gives the sum back to all. The same bits as adding
/// whole gradients in that order.
class SliceReduction {
 public:
  SliceReduction(WireTeam& team, int channel, std::vector<int> peers, int replica)
      : team_(team), channel_(channel), peers_(std::move(peers)), replica_(as_size(replica)) {}

  void run(std::vector<at::Tensor>& gradients) {
    std::vector<at::Tensor> defined;
    for (const at::Tensor& gradient : gradients)
      if (gradient.defined()) defined.push_back(gradient.reshape({-1}));
    if (defined.empty()) return;
    const at::Tensor own = at::cat(defined).cpu();
    at::Tensor sum = at::empty_like(own);
    slice(sum, replica_).copy_(fold(own));
    share(sum);
    give_back(sum, gradients);
  }

 private:
  at::Tensor slice(const at::Tensor& flat, std::size_t replica) const {
    const auto count = std::ssize(peers_), r = static_cast<std::ptrdiff_t>(replica);
    const std::int64_t begin = flat.numel() * r / count, end = flat.numel() * (r + 1) / count;
    return flat.narrow(0, begin, end - begin);
  }

  /// Sends everybody their slice of our gradient; returns the sum over our own slice.
  at::Tensor fold(const at::Tensor& own) {
    const at::Tensor mine = slice(own, replica_);
    std::vector<at::Tensor> parts(peers_.size());
    std::vector<Wire::Ticket> tickets(peers_.size());
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (r == replica_) continue;
      parts[r] = at::empty_like(mine);
      tickets[r] = team_.receive(peers_[r], channel_, parts[r]);
      team_.send(peers_[r], channel_, slice(own, r));
    }
    at::Tensor sum;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (r != replica_) expect(team_.wait(tickets[r]), parts[r]);
      const at::Tensor& part = r == replica_ ? mine : parts[r];
      sum = sum.defined() ? at::add(sum, part) : part;
    }
    return sum;
  }

  void share(const at::Tensor& sum) {
    std::vector<Wire::Ticket> tickets(peers_.size());
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (r == replica_) continue;
      tickets[r] = team_.receive(peers_[r], channel_, slice(sum, r));
      team_.send(peers_[r], channel_, slice(sum, replica_));
    }
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (r != replica_) expect(team_.wait(tickets[r]), slice(sum, r));
  }

  static void expect(std::size_t bytes, const at::Tensor& part) {
    PIPEWRIGHT_CHECK(bytes == part.nbytes(), "another replica's gradient has other parameters");
  }

  static void give_back(const at::Tensor& sum, std::vector<at::Tensor>& gradients) {
    std::int64_t next = 0;
    for (at::Tensor& gradient : gradients) {
      if (!gradient.defined()) continue;
      gradient = sum.narrow(0, next, gradient.numel()).view(gradient.sizes()).to(gradient.device());
      next += gradient.numel();
    }
  }

  WireTeam& team_;
  int channel_;
  std::vector<int> peers_;  ///< process of each replica
  std::size_t replica_;
};

class WireTransport final : public Transport {
 public:
  WireTransport(const Program& program, WireTeam& team) : program_(program), team_(team) {
    std::vector<std::vector<int>> order(program.link_from.size());
    std::vector<int> to(program.link_from.size());
    for (const auto& worker : program.workers)
      for (const Instruction& instruction : worker)
        if (instruction.send_link >= 0) {
          order[as_size(instruction.send_link)].push_back(instruction.send);
          to[as_size(instruction.send_link)] = instruction.send_to;
        }
    const int capacity = program.schedule.shape.link_capacity;
    for (int link = 0; link < static_cast<int>(order.size()); ++link) {
      const int from = program.link_from[as_size(link)];
      if (from == team.rank())
        senders_.try_emplace(link, team, link, to[as_size(link)],
                             static_cast<int>(order[as_size(link)].size()), capacity);
      else if (to[as_size(link)] == team.rank())
        receivers_.try_emplace(link, team, link, from, std::move(order[as_size(link)]));
    }
  }

  void send(const Instruction& instruction, Tensors message) override {
    if (instruction.send_link < 0)
      own_[instruction.send] = std::move(message);
    else
      senders_.at(instruction.send_link).send(std::move(message));
  }

  Tensors receive(const Instruction& instruction, int) override {
    if (instruction.receive_link >= 0)
      return receivers_.at(instruction.receive_link).receive(instruction.receive);
    auto message = own_.extract(instruction.receive);
    PIPEWRIGHT_CHECK(!message.empty(), "the message is not there");
    return std::move(message.mapped());
  }

  void reduce(const Instruction& instruction, Stage& stage, int) override {
    const Action& action = instruction.action;
    std::vector<int> peers;
    for (int replica = 0; replica < program_.schedule.shape.replicas; ++replica)
      peers.push_back(program_.schedule.shape.worker_of(action.stage, replica));
    SliceReduction(team_, reduction_channel(action.stage), std::move(peers), action.replica)
        .run(stage.gradients());
  }

  void abort() override {}

 private:
  const Program& program_;
  WireTeam& team_;
  std::map<int, Sender> senders_;
  std::map<int, Receiver> receivers_;
  std::map<int, Tensors> own_;  ///< between stages of this worker
};

}  // namespace

std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team) {
  return std::make_unique<WireTransport>(program, team);
}

}  // namespace pipewright
