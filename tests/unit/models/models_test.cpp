// SPDX-License-Identifier: Apache-2.0
// What every model must do: run in training, forward and backward, with shapes as on the meta
// device and a finite gradient for every parameter, its heads' included.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

struct SmallModel {
  const char* name;
  const char* options;
};
constexpr SmallModel kSmallModels[] = {
    {"mlp", "{widths: [12, 8, 6, 4]}"},
    {"mlp", "{widths: [12, 8, 6, 4], activation: tanh}"},
    {"mlp", "{widths: [12, 8, 6, 4], init: he, norm: layer}"},
    {"sequential",
     "{input: [2, 8, 8], layers: [{conv: 4}, batch_norm, relu, {residual: [{conv: 4}, tanh]}, "
     "{max_pool: 2}, {dropout: 0.1}, flatten, {linear: 3}]}"},
    {"sequential",
     "{input: [6], vocabulary: 11, layers: [{embedding: {width: 8, positions: true}}, "
     "{self_attention: 2}, "
     "layer_norm, {lstm: 5}, average_over_tokens, {linear: 3}]}"},
    {"sequential",
     "{input: [6], vocabulary: 11, layers: [{embedding: 8}, {lstm: 4}, {linear: 11}]}"},
    {"cnn", "{channels: 1, size: 8, width: 0.25}"},
    {"amoebanet_d", "{cells: 3, filters: 8, size: 32, classes: 3}"},
    {"vgg16", "{width: 0.05}"},
    {"vgg16", "{width: 0.02, head: classifier, batch_norm: false, aux_head: conv3_bn_gbpl_fc}"},
    {"resnet18", "{size: 16, width: 0.05, aux_head: conv4_conv3_bn_gbpl_fc}"},
    {"resnet18", "{size: 32, width: 0.05, stem: imagenet, aux_head: gbpl_fc}"},
    {"resnet18", "{size: 8, width: 0.05, cut: layers, aux_head: gbpl_fc}"},
    {"resnet50", "{size: 16, width: 0.05, aux_head: gbpl_fc}"},
    {"resnet50", "{size: 8, width: 0.05, stem: cifar, cut: blocks, aux_head: gbpl_fc}"},
    {"alexnet", "{size: 63, width: 0.02, classes: 5}"},
    {"mobilenet_v2", "{size: 16, width: 0.05, classes: 5}"},
    {"densenet121", "{size: 8, width: 0.05, classes: 3}"},
    {"densenet121", "{size: 29, width: 0.05, classes: 3, stem: imagenet}"},
    {"googlenet", "{size: 8, width: 0.05, aux_head: conv3_bn_gbpl_fc}"},
    {"googlenet", "{size: 15, width: 0.05, form: torchvision}"},
    {"inception_v3", "{size: 75, width: 0.02, classes: 3, channels: 1}"},
    {"encoder", "{layers: 2, width: 8, heads: 2, feed_forward: 12, tokens: 5, classes: 3}"},
    {"encoder", "{layers: 1, width: 6, heads: 3, feed_forward: 8, tokens: 4, norm_first: true}"},
    {"residual_lstm", "{vocabulary: 9, tokens: 5, width: 4, blocks: 2, classes: 3}"},
    {"quadratic", "{layers: 3, width: 2}"},
    {"quadratic", "{layers: 3, coupled: true, discrepancy: 2}"},
    {"gnmt8", "{vocabulary: 9, tokens: 5, width: 4}"},
    {"gnmt16", "{vocabulary: 9, tokens: 5, width: 4}"},
};

/// Four samples: made-up numbers; or made-up tokens, of a translation two texts of other lengths.
Tensors made_up_inputs(const Model& model) {
  Shape shape = model.input_shape();
  shape.insert(shape.begin(), 4);
  if (model.vocabulary() == 0) return {random(shape, 1)};
  const auto tokens = [&](const Shape& of, std::uint64_t seed) {
    return (random(of, seed).abs() * 100).to(at::kLong).remainder(model.vocabulary());
  };
  if (model.task() != Task::Translate) return {tokens(shape, 1)};
  return {tokens(shape, 1), tokens({4, shape[1] - 1}, 2)};
}

std::vector<at::Tensor> leaves(const Layer& layer, std::uint64_t seed) {
  std::vector<at::Tensor> all = random_parameters(layer, seed);
  for (at::Tensor& parameter : all) {
    parameter *= 0.3;
    parameter.set_requires_grad(true);
  }
  return all;
}

void expect_gradients(const at::Tensor& output, const std::vector<at::Tensor>& parameters,
                      const std::string& where) {
  const auto grads = torch::autograd::grad({output}, parameters, {grad_output(output, 9)},
                                           /*retain_graph=*/true);
  for (std::size_t i = 0; i < grads.size(); ++i)
    EXPECT_TRUE(at::isfinite(grads[i]).all().item<bool>()) << where << ", parameter " << i;
}

/// How often each tensor was written.
std::vector<std::int64_t> versions(const Tensors& x) {
  std::vector<std::int64_t> all;
  for (const at::Tensor& tensor : x) all.push_back(tensor._version());
  return all;
}

void expect_shapes(const Tensors& tensors, const std::vector<Shape>& shapes,
                   const std::string& where) {
  ASSERT_EQ(tensors.size(), shapes.size()) << where;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(tensors[i].sizes().slice(1), shapes[i]))
        << where << ", tensor " << i;
}

void expect_trainable(const Layer& head, const at::Tensor& x, const Shape& output,
                      std::uint64_t seed, const std::string& where) {
  const auto parameters = leaves(head, seed);
  auto buffers = fresh_buffers(head);
  const at::Tensor y = head.forward(x, parameters, buffers, {});
  EXPECT_EQ(y.sizes(), output) << where;
  expect_gradients(y, parameters, where + "'s head");
}

TEST(Models, TrainWithAFiniteGradientForEveryParameter) {
  for (const SmallModel& small : kSmallModels) {
    const auto model = make_model(small.name, small.options);
    const auto layers = model->layers();
    const auto shapes = all_boundary_shapes(*model);
    Tensors x = made_up_inputs(*model);
    Shape output{4, model->classes()};
    if (model->vocabulary() > 0 && model->task() != Task::Classify)
      output.insert(output.begin() + 1, x.back().size(1));
    std::vector<at::Tensor> parameters;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string where = std::string(small.name) + " " + layers[i]->name();
      const auto own = leaves(*layers[i], i);
      auto buffers = fresh_buffers(*layers[i]);
      const auto before = versions(x);
      const Tensors inputs = x;
      x = layers[i]->forward_all(x, own, buffers, {});
      EXPECT_EQ(versions(inputs), before) << where << " writes into its input";
      parameters.insert(parameters.end(), own.begin(), own.end());
      expect_shapes(x, shapes[i], where);
      if (const LayerPtr head = model->head(i)) expect_trainable(*head, x[0], output, i, where);
    }
    EXPECT_EQ(x[0].sizes(), output) << small.name;
    expect_gradients(x[0], parameters, small.name);
  }
}

TEST(Models, GiveTheirLayersNamesOfTheirOwn) {
  for (const SmallModel& small : kSmallModels) {
    auto names = layer_names(*make_model(small.name, small.options));
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << small.name;
    EXPECT_NE(names.front(), "") << small.name;
  }
}

TEST(Models, MakeNewLayersEachTime) {
  const auto model = make_model("cnn");
  EXPECT_NE(model->layers()[0], model->layers()[0]);
}

}  // namespace
}  // namespace pipewright::test
