// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/processes/wire_transport.h"

#include <map>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/runtime/processes/channels.h"
#include "core/runtime/processes/slice_reduction.h"
#include "core/runtime/processes/wire_links.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

/// A link between two processes and the messages that go over it, in order.
struct Link {
  int from = 0, to = 0;
  int capacity = 0;
  std::vector<int> messages;
};

std::vector<Link> links_of(const Program& program) {
  std::vector<Link> links(program.link_from.size());
  for (std::size_t worker = 0; worker < program.workers.size(); ++worker)
    for (const Instruction& instruction : program.workers[worker])
      for (const Port& port : sends_of(instruction)) {
        if (port.link < 0) continue;
        Link& link = links[as_size(port.link)];
        link.from = static_cast<int>(worker);
        link.to = port.to;
        link.capacity = program.link_capacity[as_size(port.link)];
        link.messages.push_back(port.message);
      }
  return links;
}

/// All messages from one worker to another, in order.
std::vector<int> messages_between(const Program& program, int from, int to) {
  std::vector<int> messages;
  for (const Instruction& instruction : program.workers[as_size(from)])
    for (const Port& port : sends_of(instruction))
      if (port.link >= 0 && port.to == to) messages.push_back(port.message);
  return messages;
}

class WireTransport final : public Transport {
 public:
  WireTransport(const Program& program, WireTeam& team, const DeviceGroups& groups)
      : program_(program), team_(team), groups_(groups) {
    std::vector<Link> links = links_of(program);
    for (int link = 0; link < static_cast<int>(links.size()); ++link) {
      Link& each = links[as_size(link)];
      if (each.from == team.rank()) senders_[link] = sender_to(each);
      if (each.to == team.rank()) receivers_[link] = receiver_from(link, std::move(each));
    }
  }

  void send(const Port& port, Tensors message) override {
    if (port.link < 0)
      own_[port.message] = std::move(message);
    else
      senders_.at(port.link)->send(port.link, std::move(message));
  }

  Tensors receive(const Port& port, int) override {
    if (port.link >= 0) return receivers_.at(port.link)->receive(port.message);
    auto message = own_.extract(port.message);
    PIPEWRIGHT_CHECK(!message.empty(), "the message is not there");
    return std::move(message.mapped());
  }

  SummedBytes reduce(const Instruction& instruction, Stage& stage, GradientExchange* exchange,
                     int) override {
    const Action& action = instruction.action;
    SummedBytes bytes{.values = bytes_of(stage.gradients())};
    std::vector<int> peers = program_.schedule.shape.workers_of(action.stage);
    DeviceGroup* const group = groups_.among(peers);
    SliceReduction sum(team_, group, reduction_channel(action.stage), std::move(peers),
                       action.replica);
    advance(exchange, 0, stage.gradients());
    for (int round = 1; round <= rounds_of(exchange); ++round) {
      bytes.sent += bytes_of(stage.gradients());
      sum.run(stage.gradients());
      advance(exchange, round, stage.gradients());
    }
    return bytes;
  }

  void worker_finished() override {
    for (const auto& [peer, sender] : device_senders_) sender->finish();
  }

  void abort() override {}

 private:
  std::shared_ptr<LinkSender> sender_to(const Link& link) {
    DeviceGroup* const group = groups_.between(link.from, link.to);
    if (group == nullptr)
      return host_sender(team_, link.to, static_cast<int>(link.messages.size()), link.capacity);
    std::shared_ptr<LinkSender>& shared = device_senders_[link.to];
    if (!shared)
      shared = device_sender(team_, *group, link.to, program_.schedule.shape.link_capacity);
    return shared;
  }

  std::shared_ptr<LinkReceiver> receiver_from(int number, Link link) {
    DeviceGroup* const group = groups_.between(link.from, link.to);
    if (group == nullptr) return host_receiver(team_, number, link.from, std::move(link.messages));
    std::shared_ptr<LinkReceiver>& shared = device_receivers_[link.from];
    if (!shared)
      shared =
          device_receiver(team_, *group, link.from, messages_between(program_, link.from, link.to));
    return shared;
  }

  const Program& program_;
  WireTeam& team_;
  const DeviceGroups& groups_;
  std::map<int, std::shared_ptr<LinkSender>> senders_, device_senders_;        ///< by link; by peer
  std::map<int, std::shared_ptr<LinkReceiver>> receivers_, device_receivers_;  ///< by link; by peer
  std::map<int, Tensors> own_;  ///< messages between stages of this worker
};

}  // namespace

std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team,
                                          const DeviceGroups& groups) {
  return std::make_unique<WireTransport>(program, team, groups);
}

}  // namespace pipewright
