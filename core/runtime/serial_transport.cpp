#include "core/base/error.h"
#include "core/runtime/reduction.h"
#include "core/runtime/transport.h"

namespace pipewright {
namespace {

class SerialTransport final : public Transport {
 public:
  explicit SerialTransport(const Program& program)
      : messages_(static_cast<std::size_t>(program.messages)),
        replicas_(program.schedule.shape.replicas) {
    for (int stage = 0; stage < program.schedule.shape.stages; ++stage)
      reductions_.emplace_back(replicas_);
  }

  void send(const Port& port, Tensors message) override {
    messages_[static_cast<std::size_t>(port.message)] = std::move(message);
  }
  Tensors receive(const Port& port, int) override {
    Tensors& message = messages_[static_cast<std::size_t>(port.message)];
    PIPEWRIGHT_CHECK(!message.empty(), "the message is not there");
    return std::exchange(message, {});
  }
  void reduce(const Instruction& instruction, Stage& stage, int) override {
    const Action& action = instruction.action;
    Reduction& reduction = reductions_[static_cast<std::size_t>(action.stage)];
    if (!reduction.contribute(action.replica, stage)) return;
    for (int replica = 0; replica < replicas_; ++replica) reduction.take(replica);
  }
  void abort() override {}

 private:
  std::vector<Tensors> messages_;
  int replicas_;
  std::vector<Reduction> reductions_;
};

}  // namespace

std::unique_ptr<Transport> serial_transport(const Program& program) {
  return std::make_unique<SerialTransport>(program);
}

}  // namespace pipewright
