// SPDX-License-Identifier: Apache-2.0
// What every model that reads tokens must do, whatever it computes.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/text_model.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

struct SmallTextModel {
  const char* name;
  const char* options;
};
constexpr std::int64_t kTextTokens = 6;
constexpr SmallTextModel kSmallTextModels[] = {
    {"transformer",
     "{vocabulary: 11, tokens: 6, width: 8, heads: 2, feed_forward: 12, blocks: 2, classes: 3}"},
    {"transformer",
     "{vocabulary: 11, tokens: 6, width: 6, heads: 3, feed_forward: 4, blocks: 1, dropout: 0}"},
    {"roberta",
     "{vocabulary: 11, tokens: 6, positions: 8, width: 8, heads: 2, feed_forward: 12, layers: 2, "
     "classes: 3}"},
    {"roberta",
     "{vocabulary: 11, tokens: 6, positions: 12, padding: 4, width: 6, heads: 1, feed_forward: 4, "
     "layers: 1, dropout: 0}"},
    {"gpt", "{vocabulary: 11, tokens: 6, width: 8, heads: 2, layers: 2, dropout: 0.3}"},
    {"decoder",
     "{vocabulary: 11, tokens: 6, width: 8, heads: 4, kv_heads: 2, layers: 2, dropout: 0.3}"},
    {"decoder",
     "{preset: slow_links, vocabulary: 11, tokens: 6, width: 8, heads: 2, layers: 2, dropout: "
     "0.2}"},
    {"decoder", "{preset: gpt2, vocabulary: 7, tokens: 6, width: 6, heads: 3, layers: 1}"},
    {"decoder",
     "{vocabulary: 7, tokens: 6, width: 6, heads: 2, layers: 2, positions: none, norm: layer, "
     "mlp: gelu, qk_norm: true}"},
    {"sequential",
     "{input: [6], vocabulary: 11, layers: [{embedding: 8}, {residual: [rms_norm, "
     "{causal_attention: {heads: 4, kv_heads: 2, qk_norm: true}}]}, {residual: [rms_norm, "
     "{swiglu: 12}]}, {dropout: 0.2}, {linear: 11}, {bound: 15}]}"},
    {"gpt", "{vocabulary: 7, tokens: 6, width: 6, heads: 3, layers: 1, dropout: 0}"},
};

/// Every small model in turn, with words of its own for a failure.
template <class Check>
void for_each(const Check& check) {
  for (const SmallTextModel& small : kSmallTextModels) {
    SCOPED_TRACE(std::string(small.name) + " " + small.options);
    TextModel model(small.name, small.options);
    check(model);
  }
}

/// [samples, classes], or [samples, tokens, classes] of a model that continues.
Shape output_shape(const Model& model, std::int64_t samples, std::int64_t tokens) {
  if (model.task() == Task::Continue) return {samples, tokens, model.classes()};
  return {samples, model.classes()};
}

TEST(TextModels, GiveTheShapesOfTheMetaDeviceAndOneTensorInTheEnd) {
  for_each([](const TextModel& text) {
    const auto shapes = boundary_shapes(text.model());
    const auto sizes = boundary_sizes(text.model());
    const at::Tensor ids = text.ids(4, kTextTokens, 1);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Tensors x = text.run(ids, {}, i);
      EXPECT_TRUE(std::ranges::equal(x[0].sizes().slice(1), shapes[i])) << "layer " << i;
      EXPECT_EQ(x.size(), sizes[i]) << "layer " << i;
    }
    EXPECT_EQ(sizes.back(), 1U);
    EXPECT_EQ(text.outputs(ids).sizes(), output_shape(text.model(), 4, kTextTokens));
  });
}

TEST(TextModels, LetNoGradientThroughWhatIsNoNumber) {
  for_each([](TextModel& text) {
    text.require_gradients();
    for (std::size_t i = 0; i < text.layers().size(); ++i) {
      const Tensors x = text.run(text.ids(2, kTextTokens, 1), {}, i);
      EXPECT_TRUE(x[0].requires_grad()) << "layer " << i;
      for (std::size_t j = 1; j < x.size(); ++j)
        EXPECT_FALSE(x[j].is_floating_point()) << "layer " << i;
    }
  });
}

TEST(TextModels, HaveHeadsThatMakeWhatTheModelMakes) {
  for_each([](const TextModel& text) {
    for (std::size_t i = 0; i < text.layers().size(); ++i) {
      const LayerPtr head = text.model().head(i);
      head->set_name("heads.0");
      std::vector<at::Tensor> leaves = random_parameters(*head, i);
      for (at::Tensor& leaf : leaves) leaf.set_requires_grad(true);
      const at::Tensor x = text.run(text.ids(4, kTextTokens, 1), {}, i)[0];
      const at::Tensor y = head->forward_all({x}, leaves, {}, {})[0];
      EXPECT_EQ(y.sizes(), output_shape(text.model(), 4, kTextTokens)) << "layer " << i;
      for (const at::Tensor& gradient : torch::autograd::grad({y}, leaves, {grad_output(y, 9)}))
        EXPECT_TRUE(at::isfinite(gradient).all().item<bool>()) << "layer " << i;
    }
  });
}

/// Σ outputs · g along a random direction of all parameters: its slope by autograd, and by a
/// difference over 2h.
TEST(TextModels, HaveTheGradientOfTheirOutputs) {
  constexpr double kStep = tolerance::kDifferenceStep;
  for_each([](TextModel& text) {
    const at::Tensor ids = text.ids(3, kTextTokens, 2);
    for (const bool training : {true, false}) {
      const Pass pass{.training = training, .seed = 3};
      const at::Tensor g = grad_output(text.outputs(ids, pass), 9);
      const auto value = [&] { return (text.outputs(ids, pass) * g).sum(); };
      text.require_gradients();
      const auto parameters = text.all_parameters();
      const auto gradients = torch::autograd::grad({value()}, parameters);
      const at::NoGradGuard no_grad;
      std::vector<at::Tensor> directions;
      double slope = 0;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        EXPECT_TRUE(at::isfinite(gradients[i]).all().item<bool>()) << "parameter " << i;
        directions.push_back(random(parameters[i].sizes(), 100 + i));
        // A row that stands for padding is no variable of the function.
        directions[i].masked_fill_(gradients[i] == 0, 0);
        slope += (gradients[i] * directions[i]).sum().item<double>();
      }
      const auto moved = [&](double by) {
        for (std::size_t i = 0; i < parameters.size(); ++i)
          parameters[i].detach().add_(directions[i], by);
        const double result = value().item<double>();
        for (std::size_t i = 0; i < parameters.size(); ++i)
          parameters[i].detach().sub_(directions[i], by);
        return result;
      };
      const double difference = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      EXPECT_NEAR(difference, slope, tolerance::kSlope * std::abs(slope))
          << "training: " << training;
    }
  });
}

TEST(TextModels, DoNotDependOnTheCutIntoMicroBatches) {
  for_each([](const TextModel& text) {
    const at::Tensor ids = text.ids(5, kTextTokens, 1);
    const Pass pass{.seed = 3, .epoch = 2, .minibatch = 5};
    Pass rest = pass;
    rest.first_sample = 2;
    const at::Tensor whole = text.outputs(ids, pass);
    const at::Tensor parts =
        at::cat({text.outputs(ids.narrow(0, 0, 2), pass), text.outputs(ids.narrow(0, 2, 3), rest)});
    EXPECT_LT(relative_error(parts, whole), kFloat64Relative);
  });
}

TEST(TextModels, DropInTrainingOnly) {
  for_each([](const TextModel& text) {
    const at::Tensor ids = text.ids(3, kTextTokens, 1);
    const auto differs = [&](bool training) {
      return relative_error(text.outputs(ids, {.training = training, .seed = 1}),
                            text.outputs(ids, {.training = training, .seed = 2})) > 1e-3;
    };
    const bool drops = text.model().task() == Task::Continue ? text.model().vocabulary() == 11
                                                             : text.model().classes() == 3;
    EXPECT_EQ(differs(true), drops);
    EXPECT_FALSE(differs(false));
  });
}

TEST(TextModels, TakeSamplesOfFewerTokens) {
  for_each([](const TextModel& text) {
    for (const std::int64_t tokens : {std::int64_t{1}, kTextTokens - 2})
      EXPECT_EQ(text.outputs(text.ids(2, tokens, 1)).sizes(),
                output_shape(text.model(), 2, tokens));
  });
}

TEST(TextModels, SeeTheOrderOfTokens) {
  for_each([](const TextModel& text) {
    const at::Tensor ids = at::tensor({2, 3, 5, 2, 6, 3}, at::kLong).view({1, kTextTokens});
    const at::Tensor swapped = at::tensor({2, 5, 3, 2, 6, 3}, at::kLong).view({1, kTextTokens});
    const Pass pass{.training = false};
    const auto last = [&](const at::Tensor& x) {
      const at::Tensor y = text.outputs(x, pass);
      return y.dim() == 3 ? y.select(1, kTextTokens - 1) : y;
    };
    EXPECT_GT(relative_error(last(swapped), last(ids)), 1e-6);
  });
}

TEST(TextModels, GiveTheirLayersNamesOfTheirOwn) {
  for_each([](const TextModel& text) {
    auto names = layer_names(text.model());
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
    EXPECT_NE(names.front(), "");
  });
}

}  // namespace
}  // namespace pipewright::test
