// SPDX-License-Identifier: Apache-2.0
/// Messages of passes: a stage's outputs and their gradients, exchanged with its neighbours and
/// with stages beyond them, encoded and decoded by the codecs of the edges, and counted. What else
/// is in an envelope is not counted: the loss scale of gradients, and the original tensors that an
/// observer may have sent with what a codec made of them. Weights that a stage lends to another
/// (core/schedule/lent_weights.h) and their gradients cross as they are, whatever the codec.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/runtime/pass_samples.h"
#include "core/runtime/trace_recorder.h"
#include "core/runtime/transport.h"

namespace pipewright {

/// As thread-safe as its transport; the messages of one stage belong to one thread at a time.
class Messages {
 public:
  /// All arguments must outlive it.
  Messages(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
           const RunRequest& request, const PassSamples& passes, Transport& transport,
           TraceRecorder& trace);

  /// Receives the inputs of a forward: the neighbour's outputs with the bypassing skip tensors in
  /// their places.
  Tensors inputs(const Instruction& instruction, int worker);
  struct Gradients {
    Tensors neighbour;  ///< of the outputs that went to the neighbour and have a gradient
    Tensors bypass;     ///< of the outputs that bypassed the neighbour; undefined: no gradient
  };
  /// Receives the output gradients of a backward that does not start at its stage's own loss.
  Gradients gradients(const Instruction& instruction, int worker);
  /// Sends the weights that a forward, which reads them now, lends to another stage.
  void lend(const Instruction& instruction);
  /// Sends the gradients of parameters of which other stages have copies to these stages.
  void give(const Instruction& instruction);
  /// Receives the gradients that other stages send of weights that this one lends or has a copy of,
  /// and adds them before this action.
  void take_back(const Instruction& instruction, int worker);
  /// Sends a forward's outputs, or a backward's input gradients.
  void send(const Instruction& instruction, Tensors tensors);

  /// Counts of the messages sent and received here.
  TrafficCount& traffic() { return traffic_; }

 private:
  /// What a stage keeps of a parameter that it borrows from another one.
  struct Borrowed {
    Tensors weights;    ///< those that it was sent last
    Tensors gradients;  ///< sums since it has sent them, of several in the wide format
  };

  Tensors receive_bypassing(const Instruction& instruction, int worker);
  Tensors receive(const Instruction& instruction, const Port& port, int peer, int worker,
                  bool may_be_coded = true);
  void send(const Instruction& instruction, const Port& port, int peer, Tensors tensors,
            bool coded = true);
  void give_back(const Instruction& instruction, const Bypass::Group& group, Tensors gradients);
  Borrowed& borrowed(const Action& action, const Bypass::Group& group) {
    return borrowed_[place_of(action)][{group.stage, group.parameter}];
  }
  bool shows(const Action& action) const;
  bool scales(const Action& action) const;
  std::size_t place_of(const Action& action) const;
  Stage& stage_of(const Action& action) const { return *stages_[place_of(action)]; }
  EdgeEnds* ends_of(const Action& action) const;

  const PipelineShape& shape_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  const std::vector<std::unique_ptr<EdgeEnds>>* edges_;
  Observer* observer_;
  const PassSamples& passes_;
  Transport& transport_;
  TraceRecorder& trace_;
  TrafficCount traffic_;
  using Lender = std::pair<int, int>;                 ///< a stage and the position of its parameter
  std::vector<std::map<Lender, Borrowed>> borrowed_;  ///< [place_of()]
};

}  // namespace pipewright
