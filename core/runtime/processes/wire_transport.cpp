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

class WireTransport final : public Transport {
 public:
  WireTransport(const Program& program, WireTeam& team, const DeviceGroups& groups)
      : program_(program), team_(team), groups_(groups) {
    for (int link = 0; link < static_cast<int>(program.links.size()); ++link) {
      const Link& each = program.links[as_size(link)];
      if (each.from == each.to) continue;
      if (each.from == team.rank()) senders_[link] = sender_to(each);
      if (each.to == team.rank()) receivers_[link] = receiver_from(link, each);
    }
  }

  void send(const Port& port, Tensors message) override {
    if (port.crosses)
      senders_.at(port.link)->send(port.link, std::move(message));
    else
      own_[{port.link, port.turn}] = std::move(message);
  }

  Tensors receive(const Port& port, int) override {
    if (port.crosses) return receivers_.at(port.link)->receive(port);
    auto message = own_.extract({port.link, port.turn});
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
    if (group == nullptr) return host_sender(team_, link.to, link.messages, link.capacity);
    std::shared_ptr<LinkSender>& shared = device_senders_[link.to];
    if (!shared)
      shared = device_sender(team_, *group, link.to, program_.schedule.shape.link_capacity);
    return shared;
  }

  std::shared_ptr<LinkReceiver> receiver_from(int number, const Link& link) {
    DeviceGroup* const group = groups_.between(link.from, link.to);
    if (group == nullptr) return host_receiver(team_, number, link.from, link.messages);
    std::shared_ptr<LinkReceiver>& shared = device_receivers_[link.from];
    if (!shared) shared = device_receiver(team_, *group, link.from);
    return shared;
  }

  const Program& program_;
  WireTeam& team_;
  const DeviceGroups& groups_;
  std::map<int, std::shared_ptr<LinkSender>> senders_, device_senders_;        ///< by link; by peer
  std::map<int, std::shared_ptr<LinkReceiver>> receivers_, device_receivers_;  ///< by link; by peer
  /// Messages between stages of this worker, by link and turn.
  std::map<std::pair<int, std::int64_t>, Tensors> own_;
};

}  // namespace

std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team,
                                          const DeviceGroups& groups) {
  return std::make_unique<WireTransport>(program, team, groups);
}

}  // namespace pipewright
