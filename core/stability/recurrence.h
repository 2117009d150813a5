// SPDX-License-Identifier: Apache-2.0
/// The versions that every update of every stage reads in the steady state of a schedule: the
/// recurrence that the schedule performs on the weights. It is periodic; in nearly all schemes a
/// period is one mini-batch and one update of each stage.
#pragma once

#include <vector>

#include "core/schedule/find_loop.h"

namespace pipewright {

/// One version of a stage's weights, or a prediction made from it while it was the newest.
struct Reading {
  /// Updates of the stage before this version, counted from the beginning of the period; negative
  /// for versions made before it.
  int version = 0;
  int ahead = 0;     ///< optimizer steps predicted beyond it
  int rule = 0;      ///< index into Recurrence::rules
  double scale = 1;  ///< of the learning rate in the prediction
  bool operator==(const Reading&) const = default;
};

/// A part of a gradient: what one or several micro-batches with equal readings contribute.
struct GradientTerm {
  double weight = 0;             ///< 1 for the whole gradient of the mini-batch's mean loss
  std::vector<Reading> forward;  ///< [stage] of those before the loss; the loss depends on no other
  Reading backward;              ///< of the stage whose gradient it is
  bool operator==(const GradientTerm&) const = default;
};

struct StageUpdate {
  double scale = 1;  ///< of the learning rate
  std::vector<GradientTerm> terms;
  bool operator==(const StageUpdate&) const = default;
};

struct Recurrence {
  std::vector<std::vector<StageUpdate>> stages;  ///< [stage][update of the period]
  std::vector<PredictionRule> rules;
  int minibatches = 1;  ///< of a period
  bool operator==(const Recurrence&) const = default;
};

/// The recurrence whose updates apply the gradients of so many updates of their stage before.
Recurrence with_delayed_gradients(const Recurrence& recurrence, int updates);

/// How many updates old the weights are that a stage's gradient is computed with, predicted steps
/// not counted: of the terms of all updates the most.
struct StageDelay {
  int forward = 0, backward = 0;
};
StageDelay delay_of(const Recurrence& recurrence, int stage);

struct SteadyStateOptions {
  /// How much each micro-batch counts in the gradient of its mini-batch, those of the first replica
  /// first; all slices of one count so together. Empty: all count equally, and together 1.
  std::vector<double> shares;
  /// Whether the schedules are known to be periodic once the pipe has filled. Then three equal
  /// periods are a steady state; else it takes 24 and a shorter search, because a scheme that draws
  /// its delays shows some equal ones by chance.
  bool periodic = true;
};

/// Whether schedules of many mini-batches are those of few with the middle repeated. If `make`
/// makes schedules late in a training, this is another question than Scheme::repeats(), which
/// promises it from the first mini-batch on: a scheme with a warm-up is periodic once that is over.
bool is_periodic(const ScheduleMaker& make);

/// Reads the steady state from schedules of more and more mini-batches, until periods follow one
/// another that are equal but for the numbers of their versions. Throws Error{Experiment} if
/// none is found in a schedule of a million actions, and what prove() throws.
Recurrence steady_recurrence(const ScheduleMaker& make, const SteadyStateOptions& options = {});

}  // namespace pipewright
