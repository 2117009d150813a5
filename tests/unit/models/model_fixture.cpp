#include "tests/unit/models/model_fixture.h"

#include <gtest/gtest.h>

#include "core/stage/torch.h"

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

std::vector<Tensors> boundaries(const Model& model) {
  Shape shape = model.input_shape();
  shape.insert(shape.begin(), 2);
  Tensors x{at::empty(shape, at::kMeta)};
  std::vector<Tensors> all;
  for (const LayerPtr& layer : model.layers()) all.push_back(x = run(*layer, x));
  return all;
}

Shape without_batch(const at::Tensor& x) {
  return {x.sizes().begin() + 1, x.sizes().end()};
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

std::vector<Shape> boundary_shapes(const Model& model) {
  std::vector<Shape> shapes;
  for (const Tensors& x : boundaries(model)) shapes.push_back(without_batch(x[0]));
  return shapes;
}

std::vector<std::int64_t> stage_counts(const Model& model, int stages) {
  const auto counts = parameter_counts(model);
  std::vector<std::int64_t> sums;
  std::size_t at = 0;
  for (const std::int64_t layers : model.published_balance(stages)) {
    sums.push_back(0);
    for (std::int64_t i = 0; i < layers; ++i) sums.back() += counts.at(at++);
  }
  EXPECT_EQ(at, counts.size()) << stages << " stages do not cover the model";
  return sums;
}

std::vector<std::vector<Shape>> cut_shapes(const Model& model, int stages) {
  const auto all = boundaries(model);
  std::vector<std::vector<Shape>> cuts;
  std::size_t at = 0;
  for (const std::int64_t layers : model.published_balance(stages)) {
    at += static_cast<std::size_t>(layers);
    cuts.emplace_back();
    for (const at::Tensor& x : all.at(at - 1)) cuts.back().push_back(without_batch(x));
  }
  if (!cuts.empty()) cuts.pop_back();  // what the last stage gives is no cut
  return cuts;
}

Shape head_shape(const Model& model, std::size_t last_layer) {
  return without_batch(run(*model.head(last_layer), {boundaries(model).at(last_layer)[0]})[0]);
}

std::vector<std::vector<Shape>> all_boundary_shapes(const Model& model) {
  std::vector<std::vector<Shape>> all;
  for (const Tensors& tensors : boundaries(model)) {
    all.emplace_back();
    for (const at::Tensor& x : tensors) all.back().push_back(without_batch(x));
  }
  return all;
}

}  // namespace pipewright::test
