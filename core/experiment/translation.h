/// How well a trained model translates: beam search over the test sources, and BLEU.
#pragma once

#include <atomic>

#include "core/experiment/beam_search.h"
#include "core/experiment/bleu.h"
#include "core/experiment/plan.h"

namespace pipewright {

/// BLEU of the plan's test samples, on the device of the first stage. Throws Error{Interrupted}
/// soon after `stop` has become true.
double translation_bleu(const Plan& plan, const TensorFile& weights, const std::atomic<bool>* stop);

}  // namespace pipewright
