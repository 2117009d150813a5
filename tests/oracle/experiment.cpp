// SPDX-License-Identifier: Apache-2.0
#include "experiment.h"

#include <numeric>
#include <utility>

namespace oracle {
namespace {

int first_layer(const Experiment& experiment, int stage) {
  return std::accumulate(experiment.balance.begin(), experiment.balance.begin() + stage, 0);
}

int last_layer(const Experiment& experiment) {
  return static_cast<int>(experiment.widths.size()) - 2;
}

bool has_head(const Experiment& experiment, int stage) {
  return experiment.has_heads() && stage + 1 < experiment.stages();
}

int layer_count(const Experiment& experiment, int stage) {
  return experiment.balance[static_cast<std::size_t>(stage)];
}

int width(const Experiment& experiment, int index) {
  return experiment.widths[static_cast<std::size_t>(index)];
}

}  // namespace

Layers layers_of_stage(const Experiment& experiment, int stage) {
  Layers layers;
  for (int i = 0; i < layer_count(experiment, stage); ++i) {
    const bool last = first_layer(experiment, stage) + i == last_layer(experiment);
    layers.push_back(last ? Activation::Identity : experiment.activation);
  }
  return layers;
}

std::vector<std::string> parameter_names(const Experiment& experiment, int stage) {
  std::vector<std::string> names;
  for (int i = 0; i < layer_count(experiment, stage); ++i) {
    const std::string layer = std::to_string(first_layer(experiment, stage) + i);
    names.push_back(layer + ".weight");
    names.push_back(layer + ".bias");
  }
  if (has_head(experiment, stage)) {
    const std::string head = "heads." + std::to_string(stage);
    names.push_back(head + ".weight");
    names.push_back(head + ".bias");
  }
  return names;
}

std::vector<std::pair<int, int>> parameter_shapes(const Experiment& experiment, int stage) {
  std::vector<std::pair<int, int>> shapes;
  const int first = first_layer(experiment, stage);
  const int end = first + layer_count(experiment, stage);
  for (int layer = first; layer < end; ++layer) {
    shapes.emplace_back(width(experiment, layer + 1), width(experiment, layer));
    shapes.emplace_back(1, width(experiment, layer + 1));
  }
  if (has_head(experiment, stage)) {
    const int classes = experiment.widths.back();
    shapes.emplace_back(classes, width(experiment, end));
    shapes.emplace_back(1, classes);
  }
  return shapes;
}

}  // namespace oracle
