// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/models/model_fixture.h"

#include <algorithm>

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

std::unique_ptr<Model> made(const std::string& name, const std::string& text, Problems& problems) {
  const auto* entry = Registry<Model>::instance().find(name);
  if (entry == nullptr) throw Error(ErrorKind::Bug, "no model '" + name + "'");
  const Value mapping = parse_yaml(text, "test.yaml");
  Options options(&mapping, "model", problems);
  auto model = entry->make(options);
  options.finish();
  return model;
}

Tensors run(const Layer& layer, const Tensors& x) {
  std::vector<at::Tensor> parameters, buffers;
  for (const auto& spec : layer.parameters())
    parameters.push_back(at::empty(spec.shape, at::kMeta));
  for (const auto& spec : layer.buffers()) buffers.push_back(at::empty(spec.shape, at::kMeta));
  return layer.forward_all(x, parameters, buffers, {});
}

/// For a batch of two; of a translation the target is one token shorter than the source.
Tensors inputs(const Model& model) {
  Shape shape = model.input_shape();
  shape.insert(shape.begin(), 2);
  if (model.vocabulary() == 0) return {at::empty(shape, at::kMeta)};
  const auto tokens = at::TensorOptions(at::kLong).device(at::kMeta);
  if (model.task() != Task::Translate) return {at::empty(shape, tokens)};
  return {at::empty(shape, tokens), at::empty({2, shape[1] - 1}, tokens)};
}

std::vector<Tensors> boundaries(const Model& model) {
  Tensors x = inputs(model);
  std::vector<Tensors> all;
  for (const LayerPtr& layer : model.layers()) all.push_back(x = run(*layer, x));
  return all;
}

Shape without_batch(const at::Tensor& x) {
  return {x.sizes().begin() + 1, x.sizes().end()};
}

/// The layers' counts, added up over each stage of the published cut.
Counts stage_sums(const Model& model, int stages, const Counts& counts) {
  Counts sums;
  std::size_t layer = 0;
  for (const std::int64_t layers : model.published_balance(stages)) {
    sums.push_back(0);
    for (std::int64_t i = 0; i < layers; ++i) sums.back() += counts.at(layer++);
  }
  EXPECT_EQ(layer, counts.size()) << stages << " stages do not cover the model";
  return sums;
}

}  // namespace

std::unique_ptr<Model> make_model(const std::string& name, const std::string& options) {
  Problems problems;
  auto model = made(name, options, problems);
  for (const Error& error : problems.errors()) ADD_FAILURE() << error.what();
  return model;
}

std::string model_problems(const std::string& name, const std::string& options) {
  Problems problems;
  made(name, options, problems);
  std::string text;
  for (const Error& error : problems.errors()) text += std::string(error.what()) + "\n";
  return text;
}

std::int64_t parameter_count(const Layer& layer) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : layer.parameters()) {
    std::int64_t product = 1;
    for (const std::int64_t extent : spec.shape) product *= extent;
    count += product;
  }
  return count;
}

std::vector<std::int64_t> parameter_counts(const Model& model) {
  std::vector<std::int64_t> counts;
  for (const LayerPtr& layer : model.layers()) counts.push_back(parameter_count(*layer));
  return counts;
}

std::int64_t total_parameters(const Model& model) {
  std::int64_t total = 0;
  for (const std::int64_t count : parameter_counts(model)) total += count;
  return total;
}

std::vector<std::string> layer_names(const Model& model) {
  std::vector<std::string> names;
  for (const LayerPtr& layer : model.layers()) names.push_back(layer->name());
  return names;
}

std::vector<std::string> parameter_names(const Layer& layer) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : layer.parameters())
    names.push_back(parameter_name(layer, spec.name));
  return names;
}

at::Tensor made_up(const std::string& name, at::IntArrayRef shape) {
  int characters = 0;
  for (const char c : name) characters += c;
  at::Tensor value = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < value.numel(); ++i)
    value.data_ptr<double>()[i] = std::sin(1 + 10 * characters + static_cast<double>(i));
  return value;
}

std::vector<Shape> boundary_shapes(const Model& model) {
  std::vector<Shape> shapes;
  for (const Tensors& x : boundaries(model)) shapes.push_back(without_batch(x[0]));
  return shapes;
}

std::vector<std::vector<Shape>> all_boundary_shapes(const Model& model) {
  std::vector<std::vector<Shape>> shapes;
  for (const Tensors& tensors : boundaries(model)) {
    shapes.emplace_back();
    for (const at::Tensor& x : tensors) shapes.back().push_back(without_batch(x));
  }
  return shapes;
}

std::vector<std::vector<Shape>> cut_shapes(const Model& model, int stages) {
  const auto all = all_boundary_shapes(model);
  std::vector<std::vector<Shape>> cuts;
  std::size_t end = 0;
  for (const std::int64_t layers : model.published_balance(stages))
    cuts.push_back(all.at((end += static_cast<std::size_t>(layers)) - 1));
  if (!cuts.empty()) cuts.pop_back();  // what the last stage gives is no cut
  return cuts;
}

Counts stage_parameters(const Model& model, int stages) {
  return stage_sums(model, stages, parameter_counts(model));
}

Counts stage_norms(const Model& model, int stages) {
  Counts norms;
  for (const LayerPtr& layer : model.layers())
    norms.push_back(std::ranges::count_if(layer->buffers(), [](const BufferSpec& spec) {
      return spec.name.ends_with("running_mean");
    }));
  return stage_sums(model, stages, norms);
}

std::vector<Shape> stage_shapes(const Model& model, int stages) {
  std::vector<Shape> shapes;
  for (const std::vector<Shape>& cut : cut_shapes(model, stages)) shapes.push_back(cut.front());
  return shapes;
}

std::vector<std::size_t> boundary_sizes(const Model& model) {
  std::vector<std::size_t> sizes;
  for (const Tensors& x : boundaries(model)) sizes.push_back(x.size());
  return sizes;
}

Shape head_shape(const Model& model, std::size_t last_layer) {
  const Tensors x{boundaries(model).at(last_layer)[0]};
  return without_batch(run(*model.head(last_layer), x)[0]);
}

}  // namespace pipewright::test
