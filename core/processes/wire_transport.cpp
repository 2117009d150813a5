// SPDX-License-Identifier: Apache-2.0
#include "core/processes/wire_transport.h"

#include <map>
#include <optional>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/processes/channels.h"
#include "core/processes/slice_reduction.h"
#include "core/processes/wire_links.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// The message as a list of tensors, which is all that a link carries: its tensors, the originals
/// with their number, the loss scale.
Tensors sealed(Envelope message) {
  at::Tensor scale = std::exchange(message.scale, {});
  std::optional<std::int64_t> originals;
  if (message.originals) originals = std::ssize(*message.originals);
  Tensors list = flat(std::move(message));
  if (originals)
    list.push_back(
        at::full({}, *originals, at::TensorOptions(at::kLong).device(list.front().device())));
  if (scale.defined()) list.push_back(std::move(scale));
  return list;
}

Envelope opened(Tensors list, Enclosed enclosed) {
  EnvelopeContents contents{.scale = enclosed.scale};
  at::Tensor scale = enclosed.scale ? list.pop_back_val() : at::Tensor();
  if (enclosed.originals) {
    const auto count = list.pop_back_val().item<std::int64_t>();
    PIPEWRIGHT_CHECK(count >= 0 && count <= std::ssize(list), "a message of ", list.size(),
                     " tensors ends in ", count, " originals");
    contents.originals = static_cast<std::size_t>(count);
  }
  contents.tensors = list.size() - contents.originals.value_or(0);
  if (scale.defined()) list.push_back(std::move(scale));
  return envelope_of(std::move(list), contents);
}

class WireTransport final : public Transport {
 public:
  WireTransport(const Program& program, WireTeam& team, const DeviceGroups* groups, int first_link)
      : program_(program), team_(team), groups_(groups), first_link_(first_link) {
    for (int link = 0; link < static_cast<int>(program.links.size()); ++link) {
      const Link& each = program.links[as_size(link)];
      if (each.from == each.to) continue;
      if (each.from == team.rank()) senders_[link] = sender_to(each);
      if (each.to == team.rank()) receivers_[link] = receiver_from(link, each);
    }
  }

  void send(const Port& port, Envelope message) override {
    if (port.crosses)
      senders_.at(port.link)->send(first_link_ + port.link, sealed(std::move(message)));
    else
      own_[{port.link, port.turn}] = std::move(message);
  }

  Envelope receive(const Port& port, int, Enclosed enclosed) override {
    if (port.crosses) return opened(receivers_.at(port.link)->receive(port), enclosed);
    auto message = own_.extract({port.link, port.turn});
    PIPEWRIGHT_CHECK(!message.empty(), "the message is not there");
    return std::move(message.mapped());
  }

  SummedBytes reduce(const Instruction& instruction, Stage& stage, GradientExchange* exchange,
                     int) override {
    const Action& action = instruction.action;
    SummedBytes bytes{.values = bytes_of(stage.gradients())};
    std::vector<int> peers = program_.schedule.shape.workers_of(action.stage);
    DeviceGroup* const group = groups_ == nullptr ? nullptr : groups_->among(peers);
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

  /// Replica 0 gives for all, because gradients are equal in all replicas.
  void give_number(const Action& update, double number) override {
    std::vector<double>& numbers = numbers_[update.minibatch];
    numbers.resize(as_size(program_.schedule.shape.stages));
    numbers[as_size(update.stage)] = update.replica == 0 ? number : 0;
  }
  double sum_of_numbers(const Action& update, int) override {
    if (summed_minibatch_ != update.minibatch) {
      summed_ = numbers_.extract(update.minibatch).mapped();
      team_.sum(summed_);
      summed_minibatch_ = update.minibatch;
    }
    double sum = 0;
    for (const double number : summed_) sum += number;
    return sum;
  }

  void worker_finished() override {
    for (const auto& [peer, sender] : device_senders_) sender->finish();
  }

  void abort() override {}

 private:
  DeviceGroup* between(const Link& link) const {
    return groups_ == nullptr ? nullptr : groups_->between(link.from, link.to);
  }

  std::shared_ptr<LinkSender> sender_to(const Link& link) {
    DeviceGroup* const group = between(link);
    if (group == nullptr) return host_sender(team_, link.to, link.messages, link.capacity);
    std::shared_ptr<LinkSender>& shared = device_senders_[link.to];
    if (!shared)
      shared = device_sender(team_, *group, link.to, program_.schedule.shape.link_capacity);
    return shared;
  }

  std::shared_ptr<LinkReceiver> receiver_from(int number, const Link& link) {
    DeviceGroup* const group = between(link);
    if (group == nullptr)
      return host_receiver(team_, first_link_ + number, link.from, link.messages);
    std::shared_ptr<LinkReceiver>& shared = device_receivers_[link.from];
    if (!shared) shared = device_receiver(team_, *group, link.from);
    return shared;
  }

  const Program& program_;
  WireTeam& team_;
  const DeviceGroups* groups_;
  const int first_link_;
  std::map<int, std::shared_ptr<LinkSender>> senders_, device_senders_;        ///< by link; by peer
  std::map<int, std::shared_ptr<LinkReceiver>> receivers_, device_receivers_;  ///< by link; by peer
  /// Messages between stages of this worker, by link and turn.
  std::map<std::pair<int, std::int64_t>, Envelope> own_;
  std::map<int, std::vector<double>> numbers_;  ///< given by this worker, by mini-batch and stage
  std::vector<double> summed_;                  ///< over all workers, of one mini-batch
  int summed_minibatch_ = -1;
};

}  // namespace

std::unique_ptr<Transport> wire_transport(const Program& program, WireTeam& team,
                                          const DeviceGroups* groups, int first_link) {
  return std::make_unique<WireTransport>(program, team, groups, first_link);
}

}  // namespace pipewright
