/// The recurrence that every scheme is: for t = 0, 1, …
///   forward of t with the weights its readings name, loss, backward with theirs, W^(t+1) =
///   step(W^(t), mean gradient).
/// No reading is newer than W^(t), so going through mini-batches in order, with all versions kept,
/// gives what any interleaving of the pipeline gives.
#pragma once

#include "experiment.h"

#include <vector>

namespace oracle {

struct Result {
  std::vector<Tensors> weights;  // per stage, after the last update
  std::vector<std::vector<double>>
      losses;  // per mini-batch of the run: the last site's, then those of heads 0, 1, …
};

/// `initial` holds the tensors of every stage; samples are taken in order in each epoch.
Result train(const Experiment& experiment, const Data& data, const std::vector<Tensors>& initial);

}  // namespace oracle
