// SPDX-License-Identifier: Apache-2.0
/// Evaluates the weights of a training on its test samples: loss, metrics, and translations by beam
/// search.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/records/run_folder.h"
#include "core/runtime/run_request.h"
#include "core/training/plan.h"
#include "core/translation/beam_search.h"
#include "core/translation/bleu.h"

namespace pipewright {

/// Collective: fills in what the row says of test samples, measured with the newest weights of
/// `stages`; does nothing without test samples. `request` makes a request with what all executions
/// of the training share.
void evaluate(const Plan& plan, const std::vector<std::unique_ptr<Stage>>& stages,
              const std::function<RunRequest(Batches&)>& request, EpochRow& row);

/// Mean of the losses of an epoch's mini-batches, weighted by their samples.
double mean_loss(std::span<const double> losses, const EpochOrder& order);

/// BLEU of the plan's test samples, computed on the device of the first stage. Throws
/// Error{Interrupted} soon after `stop` becomes true.
double translation_bleu(const Plan& plan, const TensorFile& weights, const std::atomic<bool>* stop);

}  // namespace pipewright
