/// What passes send and receive: a stage's outputs and their gradients, to and from its neighbours
/// and straight to and from stages beyond them, through the codecs of the edges, and counted.
#pragma once

#include "core/runtime/passes.h"
#include "core/runtime/transport.h"

namespace pipewright {

/// Threads: as of the transport; a stage's messages by one thread at a time.
class Messages {
 public:
  /// All outlive it.
  Messages(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
           const RunRequest& request, const Passes& passes, Transport& transport);

  /// Of a forward: in the order of the stage's layers, what was put aside first before the rest.
  Tensors inputs(const Instruction& instruction, int worker);
  struct Gradients {
    Tensors neighbour;  ///< of the outputs that have one, but for those that went straight …
    Tensors straight;   ///< … of which it is undefined where none comes
  };
  /// Of a backward that does not begin with its stage's own loss.
  Gradients gradients(const Instruction& instruction, int worker);
  /// A pass's outputs, or its inputs' gradients.
  void send(const Instruction& instruction, Tensors tensors);

  /// Of what was sent and received here.
  TrafficCount& traffic() { return traffic_; }

 private:
  Tensors receive_straight(const Instruction& instruction, int worker);
  Tensors receive(const Instruction& instruction, const Port& port, int peer, int worker);
  void send(const Instruction& instruction, const Port& port, int peer, Tensors message);
  std::size_t place_of(const Action& action) const;
  EdgeEnds* ends_of(const Action& action) const;

  const PipelineShape& shape_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  const std::vector<std::unique_ptr<EdgeEnds>>* edges_;
  const Passes& passes_;
  Transport& transport_;
  TrafficCount traffic_;
};

}  // namespace pipewright
