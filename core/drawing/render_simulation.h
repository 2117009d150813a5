// SPDX-License-Identifier: Apache-2.0
/// Simulations as text and SVG for people, and as a value for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/schedule/schedule.h"
#include "core/schedule/versions.h"
#include "core/simulation/hardware.h"
#include "core/simulation/idle_parts.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// One screen of text: makespan, throughput for `samples` per mini-batch, bubble with its parts, a
/// row per worker with its memory, a row per link and bus, and which devices are too small. Long
/// lists are cut.
std::string render_simulation(const Schedule& schedule, const Hardware& hardware,
                              const Simulation& simulation, const IdleParts& idle,
                              std::int64_t samples);

/// The whole simulation as a value, with memory over time if it was kept; in seconds and bytes.
Value simulation_value(const Schedule& schedule, const Hardware& hardware,
                       const Simulation& simulation, const IdleParts& idle, std::int64_t samples);

/// A thin bar in the lane of a worker, where it does nothing, or below, beside what it does.
struct TimelineMark {
  std::size_t worker = 0;
  double begin = 0, end = 0;
  const char* fill = nullptr;  ///< colour
  std::string name;            ///< its colour's name in the legend
  std::string tooltip;
  int below = 0;  ///< 0: in the lane; 1 and 2: the lines below it
};

/// One timeline of a picture with several.
struct TimelinePart {
  std::string heading;  ///< "planned: 4.10 ms; idle 25 %"
  const std::vector<std::vector<Span>>& spans;
  std::vector<TimelineMark> marks = {};
};

/// A stand-alone SVG of several timelines of one schedule below each other, to one scale, until
/// `end` seconds. With `versions`, which are parallel to the schedule's actions, tooltips name the
/// weights that passes read.
std::string render_timelines_svg(const Schedule& schedule, const std::vector<TimelinePart>& parts,
                                 const std::string& title, double end,
                                 const Versions* versions = nullptr);

/// A stand-alone SVG of the actions of every worker, to scale, until `end` seconds (0: all). Below
/// each are the messages that it sends, if they were kept and are long enough to be seen.
std::string render_timeline_svg(const Schedule& schedule, const Simulation& simulation,
                                const std::string& title, double end = 0);

}  // namespace pipewright
