// SPDX-License-Identifier: Apache-2.0
/// Every scheme as two functions: which weights a pass computes with, and from whose losses a stage
/// learns. They are formulas in the indices; no schedule is built or followed.
///
/// Stages k = 0 … N−1, D_k = N−1−k; mini-batch t counts since the pipe was last filled; micro-batch
/// j of M has the number f = tM + j. In continuous 1F1B the forward of f runs when max(0, f − D_k)
/// backwards are done, its backward when f are, and an update follows every M-th backward. In
/// updates:
///   n_F = ⌊max(0, f − D_k)/M⌋,   n_B = t,   and the gradient of t is applied to W^(t), whatever
///   the scheme.
#pragma once

#include "experiment.h"
#include "optimizers.h"

#include <vector>

namespace oracle {

/// Parameters: version n (updates since the pipe was filled; negative: before it was), predicted
/// `ahead` steps by the rule of `pass`. Equal readings are equal tensors, so "the same weights in
/// backward" is the same reading again.
struct Reading {
  int version = 0;
  int ahead = 0;
  Pass pass = Pass::Forward;

  bool operator==(const Reading&) const = default;
};

struct Readings {
  Reading forward;
  Reading backward;
};

Readings readings(const Experiment& experiment, int stage, int minibatch, int microbatch);

/// Whether a stage before the last one runs forward again, from the inputs that it had then, with
/// the weights of its backward, and goes back through these activations. What the next stage was
/// sent, and so the gradient that comes, is that of the first forward.
bool replays(const Experiment& experiment);

/// Whether the authors' queue of stashed versions goes on over drains (`refill: false`): N−k copies
/// of W^(0) at first; a backward reads the oldest, and each step puts the newest in and the oldest
/// out. So with M = 1 the backward of the run's mini-batch i reads W^(max(0, i−D)). With M
/// micro-batches f, numbered over the run, it reads W^(max(0, ⌊(f−D)/M⌋)).
bool reads_queue(const Experiment& experiment);
int queued_version(const Experiment& experiment, int stage, int minibatch, int microbatch);

/// SpecTrain 2 as coded: N−k. PipeMare: τ_k = D_k/M, at least 1; the factor of the learning rate of
/// the run's mini-batch, τ^−(1−i/K) for i = 0 … K−1 after the warm-up; γ_k = D^(1/τ_k).
double rate_factor(const Experiment& experiment, int stage, int minibatch);
double drift_decay(const Experiment& experiment, int stage);

/// The optimizer of a stage: with `momentum_by_delay` γ the momentum (β₁ of those that have betas)
/// is μ + min(τ, N)(γ − μ)/N. τ is how many updates before its own a forward reads its version,
/// late in a training and not counting predicted steps, of the micro-batch for which these are the
/// most.
OptimizerOptions optimizer_of_stage(const Experiment& experiment, int stage);

/// Weight of loss site `site` (the stage whose output it reads) in the gradient of `stage`.
double share_of_loss(const Experiment& experiment, int stage, int site);

}  // namespace oracle
