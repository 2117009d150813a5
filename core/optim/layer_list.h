// SPDX-License-Identifier: Apache-2.0
/// Options of optimizers that name layers of the model.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/config/options.h"
#include "core/optim/optimizer.h"

namespace pipewright {

/// A list of names; Optimizer::named_layers() has them looked for in the model.
inline std::vector<std::string> read_layer_list(Options& options, const std::string& name,
                                                const std::string& help) {
  const Value given = options.any(name, Value::sequence(), help);
  std::vector<std::string> layers;
  if (!given.is(Value::Kind::Sequence))
    options.problem(
        name, concat("is ", given.shown(), "; expected a list of layers such as [classifier]"));
  for (std::size_t i = 0; i < given.items.size(); ++i) {
    const Value& layer = given.items[i];
    if (layer.is(Value::Kind::Text))
      layers.push_back(layer.text);
    else
      options.problem(concat(name, "[", i, "]"),
                      concat("is ", layer.shown(), "; expected the name of a layer"));
  }
  return layers;
}

/// Whether the parameter is one of these layers'.
inline bool is_of_layers(const FlatLayout::Entry& parameter,
                         const std::vector<std::string>& layers) {
  return std::ranges::any_of(layers, [&](const std::string& layer) {
    return parameter.name.starts_with(layer) && parameter.name.size() > layer.size() &&
           parameter.name[layer.size()] == '.';
  });
}

}  // namespace pipewright
