/// Layers per stage by the rules of `pipeline.balance`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/stage/model.h"

namespace pipewright {

/// `rule`: layers, parameters, published, or "" for `list`; nothing for time and memory, of which
/// only the number of stages is checked. Throws Error{Experiment} when there are
/// more stages than layers, the list does not fit, or nothing is published.
std::vector<std::int64_t> balanced(const Model& model, const std::vector<LayerPtr>& layers,
                                   int stages, const std::string& rule,
                                   const std::vector<std::int64_t>& list);

}  // namespace pipewright
