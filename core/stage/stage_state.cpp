// SPDX-License-Identifier: Apache-2.0
// Names and shapes of what a stage holds, and the versions of its weights that outlive a schedule.
#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/stage/stage.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

NamedShapes shapes_of(const std::vector<LayerPtr>& layers, const LayerPtr& head, bool buffers) {
  NamedShapes shapes;
  auto append = [&](const Layer& layer) {
    for (const ParameterSpec& spec : layer.parameters())
      shapes.emplace_back(parameter_name(layer, spec.name), spec.shape);
    if (!buffers) return;
    for (const BufferSpec& spec : layer.buffers())
      shapes.emplace_back(parameter_name(layer, spec.name), spec.shape);
  };
  for (const LayerPtr& layer : layers) append(*layer);
  if (head) append(*head);
  return shapes;
}

}  // namespace

NamedShapes parameter_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head) {
  return shapes_of(layers, head, false);
}

double elements_of(const NamedShapes& shapes) {
  double all = 0;
  for (const auto& [name, shape] : shapes)
    all += std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
  return all;
}

NamedShapes state_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head) {
  return shapes_of(layers, head, true);
}

NamedTensors Stage::named_buffers() const {
  NamedTensors all;
  const std::vector<at::Tensor>& buffers = aside_ ? aside_->buffers : buffers_;
  for (std::size_t i = 0; i < buffers.size(); ++i) all.emplace_back(buffer_names_[i], buffers[i]);
  return all;
}

NamedTensors Stage::named_parameters() const {
  NamedTensors all;
  const at::Tensor& weights = aside_ ? aside_->weights : weights_.latest();
  for (const FlatLayout::Entry& entry : layout_.entries)
    all.emplace_back(entry.name, entry.view(weights));
  return all;
}

NamedTensors Stage::named_earlier() const {
  NamedTensors all;
  if (!weights_.has_earlier()) return all;
  for (int before = 1; before <= weights_.earlier(); ++before)
    for (const FlatLayout::Entry& entry : layout_.entries)
      all.emplace_back(concat(before, ".", entry.name),
                       entry.view(weights_.earlier_version(before)));
  return all;
}

void Stage::restore_earlier(const NamedTensors& saved) {
  weights_.add_earlier();
  for (auto& [name, tensor] : named_earlier()) {
    const auto found = std::ranges::find(saved, name, &std::pair<std::string, at::Tensor>::first);
    if (found == saved.end() || found->second.sizes() != tensor.sizes())
      throw Error(ErrorKind::Data, concat("the stash has no tensor '", name, "' of shape ",
                                          list_text(tensor.sizes())));
    tensor.copy_(found->second);
  }
}

NamedTensors Stage::named_state() const {
  const auto parameters = named_parameters(), buffers = named_buffers();
  NamedTensors all;
  for (const OwnedLayer& placed : layers_) {
    for (std::size_t i = 0; i < placed.parameters; ++i)
      all.push_back(parameters[placed.first_parameter + i]);
    for (std::size_t i = 0; i < placed.buffers; ++i)
      all.push_back(buffers[placed.first_buffer + i]);
  }
  return all;
}

}  // namespace pipewright
