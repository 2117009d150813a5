/// A simulation for eyes and for other programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/schedule/schedule.h"
#include "core/simulation/hardware.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// One screen: makespan, throughput of `samples` a mini-batch, bubble, a row per worker with its
/// memory, a row per link and bus, and what does not fit. Long lists are cut.
std::string render_simulation(const Schedule& schedule, const Hardware& hardware,
                              const Simulation& simulation, std::int64_t samples);

/// All of it, memory over time too where there is any; seconds and bytes.
Value simulation_value(const Schedule& schedule, const Hardware& hardware,
                       const Simulation& simulation, std::int64_t samples);

/// Stand-alone SVG of what every worker does when, to scale, until `end` seconds (0 = all).
std::string render_timeline_svg(const Schedule& schedule, const Simulation& simulation,
                                const std::string& title, double end = 0);

}  // namespace pipewright
