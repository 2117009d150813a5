// SPDX-License-Identifier: Apache-2.0
/// Layers that an experiment file lists: each is read with its options, and the shape of a sample
/// is followed through it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/nn/layer_kind.h"

namespace pipewright {

/// One layer of the list, made anew for each pipeline.
struct ListedLayer {
  std::function<LayerPtr()> make;
  SampleShape after;  ///< the shape behind it
};

/// Reads the option `layers` from `given`, the section that holds it. An item is the name of a
/// layer
/// (`relu`), or a mapping from one name to its options (`{conv: {out: 16, kernel: 3}}`) or to its
/// first option alone (`{linear: 10}`). `residual` and `repeat` hold lists themselves; the layers
/// of a `repeat` stand in the result as often as it says. Wrong items, and layers that the shape
/// before them does not fit, are problems with their line; then nothing is returned.
std::optional<std::vector<ListedLayer>> read_layer_list(Options& given, const SampleShape& input);

/// The names of all layers, with what each does and its options, for `describe`.
std::string layer_list_help();

}  // namespace pipewright
