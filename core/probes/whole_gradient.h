// SPDX-License-Identifier: Apache-2.0
/// The gradient of all stages together that a scheme computes of a micro-batch, against the one at
/// the weights that it is about to change.
#pragma once

#include <map>
#include <vector>

#include "core/probes/probe.h"

namespace pipewright {

/// The gradient of the whole model in a training of one thread, whose stages share this object. The
/// stages must outlive it.
class WholeGradient {
 public:
  explicit WholeGradient(int stages) : stages_(stages) {}

  /// A backward that adds to a stage's gradients is about to run: keeps a copy of the stage's
  /// newest weights.
  void begins(const Observer::Backward& about_to_run);
  /// It has added these. Once all stages have, finds cosine and norm_ratio of the whole model.
  void ended(const Instruction& pass, const StageProbe::Added& added, const Finding& found);
  void drained() { open_.clear(); }

 private:
  /// The facts known of a mini-batch.
  struct Open {
    std::vector<Stage*> stages;       ///< those whose backward has begun; others are null
    std::vector<at::Tensor> weights;  ///< [stage] newest at its backward
    std::vector<Gradients> added;     ///< [stage] divided by the micro-batch's weight
    int ended = 0;
    Tensors inputs;       ///< of the model
    PassTargets targets;  ///< of the loss
    Pass pass;
  };
  Gradients at_newest_weights(const Open& open) const;

  int stages_;
  std::map<int, Open> open_;  ///< [mini-batch of the schedule]
};

}  // namespace pipewright
