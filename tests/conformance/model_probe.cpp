// SPDX-License-Identifier: Apache-2.0
// A model's outputs and gradients, for models_test.py to compare with another library's.
//
//   model_probe CASE.yaml
//
// CASE.yaml: `model`, its weights file included; `precision`; `training`: batch statistics and
// updated buffers, else the running statistics; `input`: safetensors x, or x.0, x.1, …, and grad_y;
// `output`: safetensors y, x.grad, and under the names of the weights file the gradient of every
// parameter ("<name>.grad") and, in training, every buffer. Runs the layers one after another.
#include <cstdio>
#include <exception>

#include "core/config/value.h"
#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// A layer's parameters and buffers.
struct Placed {
  LayerPtr layer;
  std::vector<std::string> parameter_names, buffer_names;
  std::vector<at::Tensor> parameters, buffers;
};

std::vector<Placed> placed_layers(const Experiment& e, const at::TensorOptions& options) {
  std::vector<Placed> all;
  std::vector<std::pair<std::string, at::Tensor>> state;
  const auto made = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    return state.emplace_back(name, at::zeros(shape, options)).second;
  };
  for (const LayerPtr& layer : e.layers) {
    Placed& placed = all.emplace_back();
    placed.layer = layer;
    for (const ParameterSpec& spec : layer->parameters()) {
      placed.parameter_names.push_back(parameter_name(*layer, spec.name));
      placed.parameters.push_back(made(placed.parameter_names.back(), spec.shape));
    }
    for (const BufferSpec& spec : layer->buffers()) {
      placed.buffer_names.push_back(parameter_name(*layer, spec.name));
      placed.buffers.push_back(made(placed.buffer_names.back(), spec.shape));
    }
  }
  check_weights(e.weights, state_shapes(e.layers));
  load_weights(e.weights, state);
  for (Placed& placed : all)
    for (at::Tensor& parameter : placed.parameters) parameter.set_requires_grad(true);
  return all;
}

Tensors inputs_of(const TensorFile& file, const at::TensorOptions& options) {
  Tensors inputs;
  for (const auto& [name, tensor] : file.tensors) {
    if (!name.starts_with("x")) continue;
    inputs.push_back(tensor.is_floating_point() ? tensor.to(options.dtype()) : tensor);
    if (tensor.is_floating_point()) inputs.back().set_requires_grad(true);
  }
  return inputs;
}

/// Adds the gradient of a tensor that is called so here; absent gradients are zeros.
void add_gradient(TensorFile& results, const NameTranslation& translated, const std::string& name,
                  const at::Tensor& parameter) {
  const ForeignTensor theirs = translated.theirs(name);
  const at::Tensor gradient =
      parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter);
  results.tensors.emplace_back(theirs.names.at(0) + ".grad",
                               theirs.transposed ? gradient.t() : gradient);
}

void probe(const std::filesystem::path& path) {
  const Value document = load_yaml(path);
  Value experiment = Value::mapping();
  experiment.at_or_add("model") = *document.find("model");
  const Experiment e = read_experiment(experiment);
  const at::TensorOptions options(document.find("precision")->text == "float64" ? at::kDouble
                                                                                : at::kFloat);
  const bool training = document.find("training")->flag;
  auto layers = placed_layers(e, options);
  const TensorFile given = read_safetensors(document.find("input")->text);
  const Tensors inputs = inputs_of(given, options);
  Tensors values = inputs;
  for (Placed& placed : layers)
    values = placed.layer->forward_all(values, placed.parameters, placed.buffers,
                                       {.training = training});
  values[0].backward(given.find("grad_y")->to(options.dtype()));

  const NameTranslation translated(e.weights.names.value_or(ForeignNames{}));
  TensorFile results;
  results.tensors.emplace_back("y", values[0].detach());
  if (inputs[0].is_floating_point()) results.tensors.emplace_back("x.grad", inputs[0].grad());
  for (const Placed& placed : layers) {
    for (std::size_t i = 0; i < placed.parameters.size(); ++i)
      add_gradient(results, translated, placed.parameter_names[i], placed.parameters[i]);
    for (std::size_t i = 0; training && i < placed.buffers.size(); ++i)
      results.tensors.emplace_back(translated.theirs(placed.buffer_names[i]).names.at(0),
                                   placed.buffers[i]);
  }
  write_safetensors(document.find("output")->text, results);
}

}  // namespace
}  // namespace pipewright

int main(int count, char** arguments) {
  try {
    pipewright::probe(count == 2 ? arguments[1] : "");
    return 0;
  } catch (const pipewright::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
