// SPDX-License-Identifier: Apache-2.0
/// The proof of a schedule, with a drawing where it fails.
#pragma once

#include "core/schedule/prove.h"

namespace pipewright {

/// As prove(), but the message of a refusal ends with the grid, in which the culprit is marked.
/// Throws Error{Schedule}.
ProvedSchedule prove_for_eyes(Schedule&& schedule);

}  // namespace pipewright
