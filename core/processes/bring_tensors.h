// SPDX-License-Identifier: Apache-2.0
/// Copies named tensors from another process to process 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/runtime/team.h"

namespace pipewright {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Collective: process 0 gets the tensors `own` of process `from`, in its order, on the CPU; all
/// others get none. They are sent in pieces, so that little memory is needed beyond the tensors.
NamedTensors bring_tensors(Team& team, int from, const NamedTensors& own);

}  // namespace pipewright
