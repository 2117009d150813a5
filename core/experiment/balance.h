// SPDX-License-Identifier: Apache-2.0
/// The number of layers of each stage by the rules of `pipeline.balance`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/model.h"

namespace pipewright {

/// Returns layers per stage. `rule` is layers, parameters or published, or "" to use `list`; for
/// time and memory the result is empty, and only the number of stages is checked. Throws
/// Error{Experiment} if there are more stages than layers, the list does not fit, or the model has
/// no published cut.
std::vector<std::int64_t> balanced(const Model& model, const std::vector<LayerPtr>& layers,
                                   int stages, const std::string& rule,
                                   const std::vector<std::int64_t>& list);

}  // namespace pipewright
