// SPDX-License-Identifier: Apache-2.0
/// The recurrence to which every scheme reduces. For t = 0, 1, …:
///   forward and loss of t with the weights of its forward reading, backward with those of its
///   backward reading, W^(t+1) = step(W^(t), mean gradient).
/// No reading is newer than W^(t), so performing mini-batches in order, with all versions kept,
/// gives the same result as any interleaving of a pipeline.
#pragma once

#include "experiment.h"

#include <vector>

namespace oracle {

struct Result {
  std::vector<Tensors> weights;  // per stage, after the last update
  /// For each mini-batch of the run: the last site's loss, then those of heads 0, 1, …
  std::vector<std::vector<double>> losses;
};

/// Trains. `initial` has the tensors of every stage; samples are used in order in each epoch.
Result train(const Experiment& experiment, const Data& data, const std::vector<Tensors>& initial);

}  // namespace oracle
