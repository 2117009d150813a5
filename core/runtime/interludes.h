// SPDX-License-Identifier: Apache-2.0
/// Interface of what happens while an execution pauses in the middle of its schedule, with messages
/// and forwards in flight: the evaluation of weights that a stage may have trained on already. It
/// changes no bit of the execution.
#pragma once

#include <vector>

#include "core/stage/stage.h"

namespace pipewright {

class Interludes {
 public:
  virtual ~Interludes() = default;

  /// Numbers of mini-batches after which the execution pauses, rising; each below the schedule's.
  virtual const std::vector<int>& after() const = 0;
  /// A forward or an update of that stage is about to run, in the thread of its worker.
  virtual void before(const Action& action, Stage& stage) = 0;
  /// All actions of the first `minibatches` mini-batches have run, and some later ones. Called by
  /// the thread of execute() while no worker runs; in `mpi` by every process.
  virtual void pause(int minibatches) = 0;
};

}  // namespace pipewright
