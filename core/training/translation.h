// SPDX-License-Identifier: Apache-2.0
/// Evaluates a translation model by beam search over the test sources and BLEU.
#pragma once

#include <atomic>

#include "core/training/plan.h"
#include "core/translation/beam_search.h"
#include "core/translation/bleu.h"

namespace pipewright {

/// BLEU of the plan's test samples, computed on the device of the first stage. Throws
/// Error{Interrupted} soon after `stop` becomes true.
double translation_bleu(const Plan& plan, const TensorFile& weights, const std::atomic<bool>* stop);

}  // namespace pipewright
