// SPDX-License-Identifier: Apache-2.0
/// What the program makes of a case: its schedule, the order in which that can run, the versions of
/// the weights, virtual times and memory, as texts that are equal only if these are.
#pragma once

#include <array>
#include <string>

#include "tests/replay/grid.h"
#include "tests/replay/line.h"

namespace pipewright::replay {

struct Outcome {
  std::string refusal;      ///< how the message begins if the case is refused; "" otherwise
  std::size_t actions = 0;  ///< of the whole schedule, in which a loop stands once
  std::array<std::string, kDigested.size()> texts;  ///< what kDigested names
};

/// Whatever the case is refused with is part of the outcome; only Error{Bug} is thrown.
Outcome outcome_of(const Case& from);

/// The case, and the number of actions with the digests of the texts, or the refusal (line.h).
std::string line_of(const Case& from, const Outcome& outcome);

}  // namespace pipewright::replay
