// SPDX-License-Identifier: Apache-2.0
// GNMT as published by the pipeline papers' codes: counts and cuts, what crosses its boundaries,
// and what padding must not change.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

constexpr const char* kSmall = "{vocabulary: 11, width: 4, tokens: 9}";
using Counts = std::vector<std::int64_t>;

TEST(Gnmt, HasThePublishedParametersOfEachStage) {
  const auto gnmt8 = make_model("gnmt8"), gnmt16 = make_model("gnmt16");
  EXPECT_EQ(total_parameters(*gnmt8), 193'766'977);
  EXPECT_EQ(total_parameters(*gnmt16), 277'718'593);
  EXPECT_EQ(stage_parameters(*gnmt8, 4), (Counts{62'480'384, 60'385'281, 25'182'208, 45'719'104}));
  EXPECT_EQ(stage_parameters(*gnmt8, 10), (Counts{33'095'680, 16'793'600, 12'591'104, 8'396'800,
                                                  8'396'800, 33'095'680 + 8'396'800 + 2'099'201,
                                                  12'591'104, 12'591'104, 12'591'104, 33'128'000}));
  EXPECT_EQ(stage_parameters(*gnmt16, 4), (Counts{87'670'784, 81'373'185, 50'364'416, 58'310'208}));
  EXPECT_EQ(stage_parameters(*gnmt16, 8), (Counts{62'480'384, 33'587'200, 60'385'281, 25'182'208,
                                                  25'182'208, 25'182'208, 12'591'104, 33'128'000}));
  EXPECT_TRUE(gnmt8->published_balance(8).empty());
  EXPECT_TRUE(gnmt16->published_balance(10).empty());
}

TEST(Gnmt, SendsTheSourcesLengthsAndTheTargetAsLongAsTheyAreNeeded) {
  const Shape source{9, 4}, target{8, 4}, tokens{8}, length{}, scores{8, 11};
  const auto model = make_model("gnmt8", kSmall);
  EXPECT_EQ(all_boundary_shapes(*model), (std::vector<std::vector<Shape>>{{source, length, tokens},
                                                                          {{9, 8}, length, tokens},
                                                                          {source, length, tokens},
                                                                          {source, length, tokens},
                                                                          {source, length, tokens},
                                                                          {target, source, length},
                                                                          {target, source, length},
                                                                          {target, target},
                                                                          {target, target},
                                                                          {target, target},
                                                                          {target},
                                                                          {scores}}));
  EXPECT_EQ(model->encoder_layers(), 5U);
  EXPECT_EQ(make_model("gnmt16", kSmall)->encoder_layers(), 9U);
}

TEST(Gnmt, HasHeadsInTheDecoderOnly) {
  const auto model = make_model("gnmt8", kSmall);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(model->head(i), nullptr) << "layer " << i;
  for (std::size_t i = 5; i < 12; ++i) EXPECT_EQ(head_shape(*model, i), (Shape{8, 11})) << i;
}

TEST(Gnmt, StartsAsPublished) {
  const auto layers = make_model("gnmt8")->layers();
  for (const std::size_t i : {0, 5}) {
    EXPECT_DOUBLE_EQ(layers[i]->parameters()[0].init.a, 1) << "embedding";
    EXPECT_EQ(layers[i]->parameters()[0].init.zero_row, 0) << "the padding's row";
  }
  for (const std::size_t i : {1, 2, 3, 4, 6, 8, 9, 10})
    for (const ParameterSpec& spec : layers[i]->parameters())
      EXPECT_DOUBLE_EQ(spec.init.a, 1.0 / 32) << layers[i]->name() << " " << spec.name;
  EXPECT_DOUBLE_EQ(layers[11]->parameters()[1].init.a, 1.0 / 32);
}

/// The model's layers one after another in float64.
struct Network {
  explicit Network(const Model& model) : layers(model.layers()) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      parameters.push_back(random_parameters(*layers[i], i));
      for (at::Tensor& parameter : parameters.back()) parameter *= 0.5;
    }
  }
  Tensors run(Tensors x, const Pass& pass, std::size_t first, std::size_t end) const {
    const at::NoGradGuard no_grad;
    for (std::size_t i = first; i < end; ++i)
      x = layers[i]->forward_all(x, parameters[i], {}, pass);
    return x;
  }
  std::vector<LayerPtr> layers;
  std::vector<std::vector<at::Tensor>> parameters;
};

at::Tensor tokens_of(at::IntArrayRef shape, std::uint64_t seed) {
  return (random(shape, seed).abs() * 100).to(at::kLong).remainder(7) + 4;
}

TEST(Gnmt, IsTheSameWithMorePadding) {
  const auto model = make_model("gnmt8", kSmall);
  const Network network(*model);
  at::Tensor source = tokens_of({2, 5}, 1), target = tokens_of({2, 4}, 2);
  source[1].narrow(0, 3, 2).fill_(0);
  const auto scores = [&](const at::Tensor& x, const at::Tensor& y) {
    return network.run({x, y}, {.training = false}, 0, 12)[0];
  };
  const at::Tensor both = scores(source, target);
  const at::Tensor padded =
      scores(at::constant_pad_nd(source, {0, 3}), at::constant_pad_nd(target, {0, 2}));
  EXPECT_LT(relative_error(padded.narrow(1, 0, 4), both), kFloat64Relative);
  const at::Tensor alone = scores(source.narrow(0, 1, 1).narrow(1, 0, 3), target.narrow(0, 1, 1));
  EXPECT_LT(relative_error(both.narrow(0, 1, 1), alone), kFloat64Relative);
}

TEST(Gnmt, SeesOnlyTheTargetSoFar) {
  const auto model = make_model("gnmt8", kSmall);
  const Network network(*model);
  const at::Tensor source = tokens_of({2, 5}, 1), target = tokens_of({2, 4}, 2);
  at::Tensor changed = target.clone();
  changed.select(1, 3).fill_(2);
  const Pass pass{.training = false};
  const at::Tensor a = network.run({source, target}, pass, 0, 12)[0];
  const at::Tensor b = network.run({source, changed}, pass, 0, 12)[0];
  EXPECT_TRUE(at::equal(a.narrow(1, 0, 3), b.narrow(1, 0, 3)));
  EXPECT_FALSE(at::equal(a.select(1, 3), b.select(1, 3)));
}

/// With LSTMs whose weights are 0, a layer with a residual connection passes its input on, and one
/// without gives 0; dropout would show.
TEST(Gnmt, AddsTheUndroppedInputFromTheThirdLayerOn) {
  const auto model = make_model("gnmt8", "{vocabulary: 11, width: 4, tokens: 9, dropout: 0.5}");
  const auto layers = model->layers();
  const Tensors encoded{random({2, 5, 4}, 1), at::tensor({5, 5}), tokens_of({2, 3}, 2)};
  const Tensors decoded{random({2, 3, 4}, 3), random({2, 3, 4}, 4)};
  for (const std::size_t i : {3, 4, 9, 10, 2, 8}) {
    std::vector<at::Tensor> zeros;
    for (const ParameterSpec& spec : layers[i]->parameters())
      zeros.push_back(at::zeros(spec.shape, at::kDouble));
    Tensors x = i < 5 ? encoded : decoded;
    if (i == 2) x[0] = random({2, 5, 8}, 1);
    const at::Tensor y = layers[i]->forward_all(x, zeros, {}, {})[0];
    if (i == 2 || i == 8)
      EXPECT_EQ(y.abs().max().item<double>(), 0) << layers[i]->name();
    else
      EXPECT_TRUE(at::equal(y, x[0])) << layers[i]->name();
  }
}

/// Which layers drop, and that each has a mask of its own: in training against evaluation.
TEST(Gnmt, DropsAtTheInputOfAllLstmLayersButTheFirstOfASide) {
  const auto model = make_model("gnmt8", "{vocabulary: 11, width: 4, tokens: 9, dropout: 0.5}");
  const Network network(*model);
  Tensors x{tokens_of({2, 5}, 1), tokens_of({2, 4}, 2)};
  for (std::size_t i = 0; i < 12; ++i) {
    const at::Tensor trained = network.run(x, {.seed = 3}, i, i + 1)[0];
    x = network.run(x, {.training = false}, i, i + 1);
    const bool drops = (i >= 2 && i <= 4) || (i >= 8 && i <= 10);
    EXPECT_EQ(at::equal(trained, x[0]), !drops) << network.layers[i]->name();
  }
}

constexpr const char* kTranslation =
    "model: {name: gnmt8, vocabulary: 11, width: 6, tokens: 5}, dataset: {name: synthetic, train: "
    "24, test: 8}, loss: {name: cross_entropy, label_smoothing: 0.1, tokens: sum}, "
    "loader.batch_size: 6";

TEST(Gnmt, TrainsToTheSameBitsSeriallyAndInThreads) {
  for (const char* scheme : {"gpipe", "pipedream", "pipeoptim"}) {
    Laboratory laboratory(
        concat("{", kTranslation, ", pipeline.microbatches: 2, scheme: {name: ", scheme, "}}"));
    const Plan& plan = laboratory.plan();
    const Stages serial = plan.stages(), threads = plan.stages();
    const auto a = train(plan, serial, Execution::Serial);
    const auto b = train(plan, threads, Execution::Threads);
    EXPECT_EQ(flat_losses(a), flat_losses(b)) << scheme;
    EXPECT_EQ(difference(serial, threads), "") << scheme;
    EXPECT_NE(difference(serial, plan.stages()), "") << scheme;
  }
}

/// Dropout included: streams are keyed by layer and sample.
TEST(Gnmt, IsTheSameUncut) {
  const std::string exactly = ", train.precision: float64, scheme: {name: gpipe}";
  Laboratory cut(concat("{", kTranslation, exactly, ", pipeline.microbatches: 2}"));
  Laboratory whole(concat("{", kTranslation, exactly, ", pipeline.stages: 1}"));
  const Stages four = cut.plan().stages(), one = whole.plan().stages();
  train(cut.plan(), four, Execution::Serial);
  train(whole.plan(), one, Execution::Serial);
  EXPECT_LT(distance(four, one, state_of(one).size()), tolerance::kTrainedOtherwise);
}

TEST(Gnmt, RefusesAuxiliaryLossesInItsEncoder) {
  Laboratory laboratory(concat("{", kTranslation, ", scheme: {name: interlocking}}"));
  try {
    laboratory.plan();
    ADD_FAILURE() << "it was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("'encoder."), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace pipewright::test
