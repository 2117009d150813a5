/// Named tensors of another process.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/runtime/processes/team.h"

namespace pipewright {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Collective: process 0 gets the tensors that process `from` gives, in its order, on the CPU; all
/// others get none. They go in pieces, so that besides the tensors themselves little memory is
/// held.
NamedTensors bring_tensors(Team& team, int from, const NamedTensors& own);

}  // namespace pipewright
