// SPDX-License-Identifier: Apache-2.0
/// Choice of one point of a sweep by a name that a user gives it: `--point 'spectrain v1, stages
/// 4'`.
#pragma once

#include <cstddef>
#include <string>

#include "core/config/merge.h"

namespace pipewright {

/// Number of points of the document's sweep; 0 without a sweep or with an empty one. Throws
/// Error{Experiment} if the sweep cannot be read.
std::size_t count_points(const Value& document);

struct ChosenPoint {
  SweepPoint point;
  std::size_t number = 1;    ///< number of the point, from 1
  std::size_t count = 1;     ///< number of points of the sweep
  std::string title;         ///< as `check` and `sweep` print it
  std::size_t reseeded = 0;  ///< further points that fit and differ only in their seed
};

/// Finds the point that `name` means: its title, its number from 1, or a sequence, with or without
/// commas, of its label and of values that it varies ("stages 4", "pipeline.stages=4", "gpipe"). If
/// the points that fit differ only in their seed, the first is chosen. Throws Error{Experiment}
/// with the nearest titles if `name` fits no point, or points that differ in more than their seed.
ChosenPoint choose_point(const Value& document, const std::string& name);

}  // namespace pipewright
