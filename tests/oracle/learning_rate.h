// SPDX-License-Identifier: Apache-2.0
/// The learning rate of a mini-batch. With t epochs or steps done (`per`) of T in the whole run:
///   step       lr·γ^⌊t/size⌋               multistep  lr·γ^(milestones ≤ t)
///   poly       end + (lr − end)·(1 − t/T)^power
///   cosine     end + (lr − end)·(1 + cos(πt/T))/2
///   linear     lr + (end − lr)·t/T
///   constant_then_linear   lr until t = constant·T, then on a line to `end` at T
///   warm-up    for t < length the factor start + (1 − start)·t/length; decay counts from t = 0
#pragma once

#include "experiment.h"

namespace oracle {

/// `minibatch` counts from 0 over the whole run.
double learning_rate(const Experiment& experiment, int minibatch);

}  // namespace oracle
