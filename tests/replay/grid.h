// SPDX-License-Identifier: Apache-2.0
/// The cases of a replay: every scheme with every combination of its options, over a grid of
/// shapes.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/rewrites/recompute.h"
#include "core/schedule/schedule.h"

namespace pipewright::replay {

struct Case {
  /// Scheme, options that are not their defaults, and shape; the same in each version of the
  /// program, and no two cases have the same. So an option that is new leaves earlier names alone.
  std::string name;
  std::string scheme;   ///< its registered name
  std::string options;  ///< as in an experiment file: "{version: 2}"
  PipelineShape shape;
  Recomputation recomputation = Recomputation::Never;
  bool loop = false;  ///< whether the schedule is made as a loop, if the scheme repeats itself
};

/// All cases in a fixed order. Throws Error{Bug} if two of them have the same name.
std::vector<Case> every_case();

}  // namespace pipewright::replay
