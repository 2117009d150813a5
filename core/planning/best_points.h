// SPDX-License-Identifier: Apache-2.0
/// The fastest points of a simulated sweep, for each combination of two axes and of whatever else
/// is given and not chosen.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/planning/simulated_sweep.h"

namespace pipewright {

/// How much slower a candidate may be, as a share of the best pace, to be named beside the best.
inline constexpr double kNear = 0.01;

/// The points of one combination.
struct BestCell {
  std::vector<std::size_t> points;  ///< indices into SimulatedSweep::points
  /// The point with the most samples a second among those that fit. Of paces that are equal to one
  /// in a million the one with the least memory is taken, then the first of the sweep.
  std::optional<std::size_t> best;
  std::vector<std::size_t> near;  ///< the fastest of each other candidate within kNear, in order
  bool alone = false;  ///< whether no other candidate fits here, though the sweep has others
};

/// The cells of one combination of the conditions.
struct BestMap {
  std::vector<std::string> conditions;       ///< values, parallel to BestPoints::conditions
  std::vector<std::vector<BestCell>> cells;  ///< [y][x]
};

struct BestPoints {
  std::string x, y;  ///< keys of the axes, or "workers"; "" for an axis with one cell
  std::vector<std::string> x_values, y_values;  ///< ascending if they are numbers
  std::vector<std::string> candidates;          ///< in the sweep's order
  std::vector<std::string> choices;     ///< further keys among whose values the best is chosen
  std::vector<std::string> conditions;  ///< keys that are given: each combination is a map
  std::vector<BestMap> maps;
};

/// The best points. `x` and `y` are keys that vary, or "workers"; where they are empty, x is the
/// bandwidth that varies, else another property of the hardware, and y the number of workers.
/// Scheme and pipeline are chosen; hardware, model, data and training are conditions. Throws
/// Error{Experiment} for a key that does not vary.
BestPoints best_points(const SimulatedSweep& sweep, std::string x = {}, std::string y = {});

/// The choices of a point besides its candidate, short: "M 16, N 8".
std::string choices_text(const SimulatedSweep& sweep, const BestPoints& best, std::size_t point);
/// "none fits" or "refused", of a cell without a best point.
std::string why_none(const SimulatedSweep& sweep, const BestCell& cell);
/// The meaning of the letters in choices_text(); "" if it uses none.
std::string choices_legend(const BestPoints& best);
/// A combination of conditions in words, such as "latency_us 5"; "" without conditions.
std::string conditions_text(const BestPoints& best, const BestMap& map);

}  // namespace pipewright
