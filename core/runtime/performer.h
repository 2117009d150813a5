// SPDX-License-Identifier: Apache-2.0
/// What an instruction does: passes, messages and updates of the stages, in the order in which the
/// executor asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/as_size.h"
#include "core/runtime/devices/late_value.h"
#include "core/runtime/devices/offloaded.h"
#include "core/runtime/graphs/graphed_loop.h"
#include "core/runtime/losses_and_metrics.h"
#include "core/runtime/messages.h"
#include "core/runtime/pass_samples.h"
#include "core/runtime/pauses.h"
#include "core/runtime/program.h"
#include "core/runtime/run_request.h"
#include "core/runtime/trace_recorder.h"
#include "core/runtime/transport.h"
#include "core/stage/stage.h"

namespace pipewright {

/// Performs the instructions of a program's workers with the stages of this process. Workers may
/// perform at the same time, each in one thread; the parts of the request, transport and trace
/// must outlive it.
class Performer {
 public:
  Performer(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
            const RunRequest& request, Transport& transport, TraceRecorder& trace);

  /// Throws what the stage, the loader, a codec or the transport throws.
  void perform(const Instruction& instruction, int worker);
  /// Awaits gradients of lent weights that come behind a pass.
  void take_back(const Instruction& instruction, int worker);
  /// Ends the worker's updates that can end by the pause, and reads its last losses.
  void finish(int worker, const Pause& pause);

  /// With graphs, before the action at this position of the serial order, of those up to `end`:
  /// begins a round of the loop, or ends it, if it is time.
  void begin_round(std::int64_t position, std::int64_t end);
  /// Ends the graph that is being recorded or launched, if there is one.
  void end_graph();
  /// The passes of graphs; null without.
  GraphedPasses* graphs() { return graphs_ ? &graphs_->passes() : nullptr; }
  const GraphedPasses* graphs() const { return graphs_ ? &graphs_->passes() : nullptr; }
  GraphsUsed graphs_used() const { return graphs_ ? graphs_->used() : GraphsUsed(); }

  LossesAndMetrics& losses() { return losses_; }
  TrafficCount& traffic() { return messages_.traffic(); }
  /// "worker 1, stage 1, 1F7" for messages about this action.
  std::string where(const Action& action, int worker) const {
    return passes_.where(action, worker);
  }

 private:
  /// What a pass gets from the loader.
  struct Fetched {
    Tensors inputs;       ///< of the first stage
    PassTargets targets;  ///< where there is a loss
  };

  /// Whether its action has the host or the loader do something, which cannot be part of a graph.
  bool needs_host(const Instruction& instruction) const;
  /// A pass begins. Returns whether it is launched with a graph and must not be performed.
  bool begin_graph();
  /// The same for a pass that computes with what it gets.
  bool begin_graph(Fetched& fetched);
  void forward(const Instruction& instruction, Stage& stage, int worker);
  void recompute(const Instruction& instruction, Stage& stage);
  /// The targets of a pass in training.
  PassTargets targets(const Action& action, const Share& share, const Stage& stage) const;
  std::optional<LateValue> metric_sums(const at::Tensor& output, const at::Tensor& target) const;
  void head(const Instruction& instruction, Stage& stage, int worker);
  void backward(const Instruction& instruction, Stage& stage, int worker);
  void show_end(const Instruction& instruction, Stage& stage);
  void show_backward(const Instruction& instruction, Stage& stage,
                     const Stage::BackwardRequest& request);
  /// Updates a stage. Where a gradient rule is over the whole model, it only publishes the squared
  /// norm of this stage's gradients. The update ends before the stage's next action: every worker
  /// has its updates before its next mini-batch, so all norms are known by then.
  void begin_update(const Instruction& instruction, Stage& stage, int worker);
  /// Ends the update that the stage has begun, if there is one.
  void end_update(std::size_t index, int worker);
  /// Ends the worker's updates of mini-batches that all stages have begun to update by the pause.
  void end_updates_of(int worker, const Pause& pause);
  void update(const Instruction& instruction, Stage& stage, int worker,
              std::optional<double> model_square);
  /// Counts mini-batches in `mpi` by worker 0's updates, because it does not see the last stage's
  /// losses.
  void count_minibatch(const Instruction& instruction) const;
  void use(const Instruction& instruction, Stage& stage);
  /// The prediction that the instruction makes, with the rates of the updates that its steps stand
  /// for, if its rule asks for them.
  std::optional<Stage::Ahead> prediction(const Instruction& instruction) const;
  void record(const Instruction& instruction, const at::Tensor& loss, int worker,
              std::optional<LateValue> sums = {});

  std::size_t index_of(const Action& action) const {
    return as_size(action.replica * program_.schedule.shape.stages + action.stage);
  }
  OffloadedForwards::Forward forward_of(const Action& action) const {
    return {index_of(action), passes_.id(action)};
  }
  Stage& stage_of(const Action& action) const { return *stages_[index_of(action)]; }
  GradientExchange* exchange_of(const Action& action) const {
    return request_.exchanges == nullptr ? nullptr : (*request_.exchanges)[index_of(action)].get();
  }

  const Program& program_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  const RunRequest& request_;
  Transport& transport_;
  PassSamples passes_;
  LossesAndMetrics losses_;
  std::vector<std::optional<Instruction>> begun_;  ///< updates that wait for other stages
  std::vector<OffloadedForwards> offloaded_;       ///< [worker]
  Messages messages_;
  std::optional<GraphedLoop> graphs_;
};

}  // namespace pipewright
