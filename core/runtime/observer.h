// SPDX-License-Identifier: Apache-2.0
/// Interface of an observer of executions, such as a probe (core/probes). It changes no bit.
#pragma once

#include <cstdint>
#include <functional>

#include "core/runtime/program.h"
#include "core/stage/stage.h"

namespace pipewright {

/// Every function is called by the thread of the action's worker; those of different workers may
/// run at the same time. Gradients, weights, buffers and random numbers must stay as they are.
class Observer {
 public:
  virtual ~Observer() = default;

  /// A pass begins; its weights are installed.
  virtual void began(const Instruction& instruction, Stage& stage) = 0;

  /// A backward that is about to run, as Stage::backward() will be called.
  struct Backward {
    const Instruction& instruction;
    Stage& stage;
    int id = 0;  ///< under which the stage keeps the forward
    const Stage::BackwardRequest& request;
    Pass pass;                             ///< the forward's
    std::function<PassTargets()> targets;  ///< on the last stage
  };
  virtual void backward(const Backward& about_to_run) = 0;
  /// How much a micro-batch counts in the gradient of its mini-batch: it adds `factor` times the
  /// gradient of the mean loss over its `samples` samples.
  struct Weighting {
    std::int64_t samples = 0;
    double factor = 1;
  };
  /// A pass has ended; the versions that it was the last to use still exist.
  virtual void ended(const Instruction& instruction, Stage& stage, const Weighting& weighting) = 0;

  /// The stage's gradients, summed over micro-batches and replicas, are about to be applied to the
  /// latest version, before any gradient rule; then they have been.
  virtual void updates(const Instruction& instruction, Stage& stage) = 0;
  virtual void updated(const Instruction& instruction, Stage& stage) = 0;

  /// Whether a message that this pass sends or receives, and a codec encodes, shall take its
  /// original tensors along to compared(). Both ends ask; these bytes are not counted as traffic.
  virtual bool compares(const Action& pass) const = 0;
  /// A message to `pass` from stage `peer`: its floating-point tensors as they were sent, and as
  /// they arrived.
  virtual void compared(const Action& pass, int peer, const Tensors& sent,
                        const Tensors& arrived) = 0;
};

}  // namespace pipewright
