/// Samples that no data set has, for measuring: numbers and tokens of every size and none by
/// chance.
#pragma once

#include "core/stage/dataset.h"
#include "core/stage/model.h"

namespace pipewright {

/// x and y as the model wants them, texts at their longest; floating x in `options`.
Batch made_up_batch(const Model& model, std::int64_t samples, const at::TensorOptions& options);

}  // namespace pipewright
