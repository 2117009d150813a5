// SPDX-License-Identifier: Apache-2.0
/// The result of a simulation in one sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/simulation/hardware.h"
#include "core/simulation/idle_parts.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// The worker whose device is too small by most or, if all are large enough, whose peak is largest.
std::size_t neediest_worker(const Hardware& hardware, const Simulation& simulation);

/// Samples a second with two digits behind the point, or as a whole number from 100 on.
std::string pace_text(double per_second);

/// "12.3 %"; "0.0 %" of nothing.
std::string percent_of(double part, double whole);

/// "worker 0 needs most memory, 9.31 GiB, and its device has 8.00 GiB: it does not fit".
std::string memory_answer(const Hardware& hardware, const Simulation& simulation);

/// "In short: 85.0 samples/s; workers compute 61 % of their time, and …" with a line break.
std::string render_answer(const Hardware& hardware, const Simulation& simulation,
                          const IdleParts& idle, std::int64_t samples);

}  // namespace pipewright
