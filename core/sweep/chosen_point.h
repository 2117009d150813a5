/// One point of a sweep, chosen by what a person calls it: `--point 'spectrain v1, stages 4'`.
#pragma once

#include <cstddef>
#include <string>

#include "core/config/merge.h"

namespace pipewright {

/// Points of the document's sweep; 0 where it has none, or an empty one. Throws Error{Experiment}
/// for a sweep that cannot be read.
std::size_t count_points(const Value& document);

struct ChosenPoint {
  SweepPoint point;
  std::size_t number = 1;    ///< from 1
  std::size_t count = 1;     ///< points of the sweep
  std::string title;         ///< as `check` and `sweep` print it
  std::size_t reseeded = 0;  ///< further points that `name` fits, which differ in their seed only
};

/// The point that `name` means: its title, its number from 1, or a sequence, with or without
/// commas, of its label and of values that it varies ("stages 4", "pipeline.stages=4", "gpipe"). Of
/// points that differ in their seed only, the first. Throws Error{Experiment} with the nearest
/// titles where `name` fits no point, or points that differ in more.
ChosenPoint choose_point(const Value& document, const std::string& name);

}  // namespace pipewright
