// SPDX-License-Identifier: Apache-2.0
/// The measured times of one layer's repetitions, and what equal layers have in common: their
/// repetitions are pooled, so that noise does not tell them apart.
#pragma once

#include <string>
#include <vector>

#include "core/cost/profile.h"

namespace pipewright {

/// Seconds of each repetition. Empty: the layer has no such pass.
struct LayerTimes {
  std::vector<double> forwards, backwards, inputs, weights, updates;

  /// The medians, as the layer's cost. A layer without updates has no parameters.
  void give(LayerCost& cost) const;
};

/// Gives layers of a profile the medians over the repetitions of all layers that are equal to them:
/// those with the same operations, operators, parameters and bytes, but for the last, which has the
/// loss. Returns how much times scatter: the middle half of the repetitions of equal layers, as a
/// part of their median, the mean over the profile's time.
double pool_equal_layers(Profile& profile, const std::vector<LayerTimes>& times);

}  // namespace pipewright
