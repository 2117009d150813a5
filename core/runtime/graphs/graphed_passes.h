// SPDX-License-Identifier: Apache-2.0
/// Passes of a serial execution as graphs of its device. A graph has the passes between two pieces
/// of work that need the host: updates, predictions, and samples that are copied to the device.
/// These are performed in every round; passes of launched rounds are not. What the stages keep and
/// what is in flight stay meanwhile as they were behind the recorded rounds, and the graphs give
/// them their values.
#pragma once

#include <map>
#include <vector>

#include "core/runtime/devices/graph_recorder.h"
#include "core/runtime/graphs/graph_rounds.h"
#include "core/runtime/program.h"
#include "core/stage/gradient_sums.h"

namespace pipewright {

/// Used by one thread.
class GraphedPasses {
 public:
  explicit GraphedPasses(GraphRecorder& recorder) : recorder_(recorder) {}
  GraphedPasses(const GraphedPasses&) = delete;

  /// A loss that is recorded when the graph in which it is computed has been launched.
  struct Loss {
    Instruction instruction;
    int worker = 0;
    std::int64_t updates = 0;  ///< that its weights have had
    at::Tensor value;
  };

  GraphRounds& rounds() { return rounds_; }
  const GraphRounds& rounds() const { return rounds_; }
  /// GraphRounds::begin() with the addresses of the pools and `weights`.
  void begin_round(std::int64_t left, const GraphRounds::Addresses& weights);
  /// Graphs of the recorded rounds.
  std::size_t graphs() const { return graphs_.size(); }
  /// Whether the passes of this round are launched and must not be performed.
  bool launches() const { return rounds_.kind() == RoundKind::Launched; }

  /// A pass begins. It is in the same graph as the one before unless end() has been called.
  void begin();
  /// What a pass computes with instead of a sample that was copied to the device before begin();
  /// undefined if the pass is launched.
  at::Tensor given(const at::Tensor& sample);
  /// Keeps a loss until end(); its value is undefined if the pass is launched.
  void keep(Loss loss) { losses_.push_back(std::move(loss)); }
  /// Ends the graph, if there is one, before work of the host. Returns the losses that can be read.
  std::vector<Loss> end();

  /// Ends a recording that an exception has cut off, on the stream on which it began; does nothing
  /// if there is none.
  void abandon() noexcept;

  /// Before an update of the stage replica with that index, and after it: in launched rounds its
  /// sums are those that the graphs have computed.
  void begin_update(std::size_t index, WeightGradients& sums);
  void end_update(std::size_t index, WeightGradients& sums);

 private:
  struct Graph {
    int number = 0;
    std::vector<at::Tensor> samples;  ///< the graph reads these
    std::vector<at::Tensor> losses;   ///< views of its memory
  };
  void take_turn();

  GraphRecorder& recorder_;
  GraphRounds rounds_;
  bool open_ = false;
  std::vector<at::Tensor> samples_;  ///< of the graph that is recorded
  std::size_t given_ = 0;            ///< samples of the graph that is launched next
  std::vector<Loss> losses_;
  std::vector<Graph> graphs_;                      ///< of all phases
  std::vector<WeightGradients::Added> to_update_;  ///< views, of all updates of all phases
  /// Rounds take their memory from these in turn. There are so many that each is empty when its
  /// turn comes, so that its tensors lie where they lay the last time.
  std::vector<int> pools_;
  std::size_t turn_ = 0;      ///< of the round's pool
  std::int64_t uploads_ = 0;  ///< before the graph
  std::size_t next_graph_ = 0, next_update_ = 0;
  std::map<std::size_t, WeightGradients::Added> aside_;  ///< the stages' own sums, by index
};

}  // namespace pipewright
