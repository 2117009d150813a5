// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <optional>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/runtime/message_places.h"
#include "core/runtime/reduction.h"
#include "core/runtime/stage_numbers.h"
#include "core/runtime/transport.h"

namespace pipewright {
namespace {

class SerialTransport final : public Transport {
 public:
  explicit SerialTransport(const Program& program)
      : places_(program),
        messages_(places_.count()),
        replicas_(program.schedule.shape.replicas),
        numbers_(program.schedule.shape) {
    for (int stage = 0; stage < program.schedule.shape.stages; ++stage)
      sums_.emplace_back(replicas_);
  }

  void send(const Port& port, Envelope message) override {
    std::optional<Envelope>& slot = messages_[places_.index(port)];
    PIPEWRIGHT_CHECK(!slot, "the place of the message is taken");
    slot = std::move(message);
  }
  Envelope receive(const Port& port, int, Enclosed) override {
    std::optional<Envelope>& slot = messages_[places_.index(port)];
    PIPEWRIGHT_CHECK(slot, "the message is not there");
    return *std::exchange(slot, {});
  }
  /// The last replica to arrive performs the later rounds for all replicas.
  SummedBytes reduce(const Instruction& instruction, Stage& stage, GradientExchange* exchange,
                     int) override {
    const Action& action = instruction.action;
    SummedBytes bytes{.values = bytes_of(stage.gradients())};
    Sum& sum = sums_[as_size(action.stage)];
    sum.parts[as_size(action.replica)] = {&stage, exchange};
    advance(exchange, 0, stage.gradients());
    bool added = sum.contribute(action.replica, bytes);
    for (int round = 1; added; ++round) {
      for (int replica = 0; replica < replicas_; ++replica) sum.take(replica, round);
      if (round == rounds_of(exchange)) break;
      for (int replica = 0; replica < replicas_; ++replica) added = sum.contribute(replica, bytes);
    }
    return bytes;
  }
  void give_number(const Action& update, double number) override { numbers_.give(update, number); }
  double sum_of_numbers(const Action& update, int) override { return numbers_.take(update); }
  void move_on(std::int64_t rounds) override { places_.move_on(messages_, rounds); }
  void abort() override {}

 private:
  struct Part {
    Stage* stage = nullptr;
    GradientExchange* exchange = nullptr;
  };
  /// The sum of one stage's gradients over its replicas.
  struct Sum {
    explicit Sum(int replicas) : reduction(replicas), parts(as_size(replicas)) {}
    bool contribute(int replica, SummedBytes& bytes) {
      Stage& stage = *parts[as_size(replica)].stage;
      bytes.sent += bytes_of(stage.gradients());
      return reduction.contribute(replica, stage.gradients(), stage.device());
    }
    void take(int replica, int round) {
      const auto& [stage, exchange] = parts[as_size(replica)];
      reduction.take(replica, stage->gradients());
      advance(exchange, round, stage->gradients());
    }
    Reduction reduction;
    std::vector<Part> parts;
  };

  MessagePlaces places_;
  std::vector<std::optional<Envelope>> messages_;
  int replicas_;
  StageNumbers numbers_;
  std::deque<Sum> sums_;
};

}  // namespace

std::unique_ptr<Transport> serial_transport(const Program& program) {
  return std::make_unique<SerialTransport>(program);
}

}  // namespace pipewright
