// SPDX-License-Identifier: Apache-2.0
// One stage by itself: what it keeps, what it adds, and what it frees.
#include "core/stage/stage.h"

#include "core/base/error.h"
#include "tests/unit/stage/stage_fixture.h"

namespace pipewright::test {
namespace {

using StageBackward = StageTest;
using StageHead = StageTest;
using StageState = StageTest;
using StageWithoutParameters = StageTest;

TEST_F(StageBackward, GivesTheGradientsOfItsLayers) {
  Stage s = stage({linear(3, 2)});
  s.forward(5, {x_.clone()}, {}, true);
  const at::Tensor g = random({4, 2}, 2);
  const Tensors of_input = s.backward(5, {.gradients = {g}, .input_gradient = true});
  ASSERT_EQ(of_input.size(), 1u);
  EXPECT_LT(relative_error(of_input[0], at::matmul(g, value(s, "0.weight"))), kFloat64Relative);
  EXPECT_LT(relative_error(s.gradients()[0], at::matmul(g.t(), x_)), kFloat64Relative);
  EXPECT_LT(relative_error(s.gradients()[1], g.sum(0)), kFloat64Relative);
}

TEST_F(StageBackward, AddsSeveralOfThemEachTimesItsScale) {
  Stage s = stage({linear(3, 2)});
  at::Tensor expected = at::zeros({2, 3}, at::kDouble);
  for (int id = 0; id < 4; ++id) {
    const double scale = 1.0 - 0.25 * id;
    const at::Tensor g = random({4, 2}, static_cast<std::uint64_t>(10 + id));
    s.forward(id, {x_.clone()}, {}, false);
    s.backward(id, {.gradients = {g}, .scale = scale});
    expected += scale * at::matmul(g.t(), x_);
  }
  EXPECT_LT(relative_error(s.gradients()[0], expected), kFloat64Relative);
}

TEST_F(StageBackward, OfSeveralLossesWalksTheSameGraph) {
  Stage s = stage({linear(3, 2), activation(Activation::Tanh), linear(2, 2)});
  const at::Tensor g = random({4, 2}, 2), h = random({4, 2}, 3);
  s.forward(0, {x_.clone()}, {}, false);
  s.backward(0, {.gradients = {g}, .last = false});
  s.backward(0, {.gradients = {h}, .scale = 0.5});
  Stage other = stage({linear(3, 2), activation(Activation::Tanh), linear(2, 2)});
  other.forward(0, {x_.clone()}, {}, false);
  other.backward(0, {.gradients = {g + 0.5 * h}});
  for (std::size_t p = 0; p < 4; ++p)
    EXPECT_LT(relative_error(s.gradients()[p], other.gradients()[p]), kFloat64Relative);
}

TEST_F(StageBackward, WithoutLearningOnlyRelays) {
  Stage s = stage({linear(3, 2)});
  s.forward(0, {x_.clone()}, {}, true);
  const Tensors of_input =
      s.backward(0, {.gradients = {random({4, 2}, 2)}, .learn = false, .input_gradient = true});
  EXPECT_EQ(of_input[0].sizes(), x_.sizes());
  for (const at::Tensor& gradient : s.gradients()) EXPECT_FALSE(gradient.defined());
}

TEST_F(StageBackward, AfterTheLastIsABug) {
  Stage s = stage({linear(3, 2)});
  const at::Tensor g = random({4, 2}, 2);
  s.forward(0, {x_.clone()}, {}, false);
  s.backward(0, {.gradients = {g}});
  try {
    s.backward(0, {.gradients = {g}});
    ADD_FAILURE() << "the graph is still there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Bug);
  }
}

TEST_F(StageBackward, KeepsForwardsApartById) {
  Stage s = stage({linear(3, 2)});
  const at::Tensor g = random({4, 2}, 2), other = random({4, 3}, 9);
  s.forward(0, {x_.clone()}, {}, false);
  s.forward(1, {other.clone()}, {}, false);
  s.backward(0, {.gradients = {g}});
  EXPECT_LT(relative_error(s.gradients()[0], at::matmul(g.t(), x_)), kFloat64Relative);
}

TEST_F(StageBackward, OfTheModelsLossTakesItsFactor) {
  auto gradient = [&](double factor) {
    Stage s = stage({linear(3, 2)}, true);
    s.forward(0, {x_.clone()}, {}, false);
    s.final_loss(0, y_);
    s.backward(0, {.own_loss = true, .factor = factor});
    return s.gradients()[0];
  };
  EXPECT_LT(relative_error(gradient(0.25), 0.25 * gradient(1)), kFloat64Relative);
}

TEST_F(StageHead, LearnsFromTheHeadAlone) {
  Stage s = stage({linear(3, 5)}, false, linear(5, 2));
  s.forward(0, {x_.clone()}, {}, false);
  s.head(0, y_, {}, 1, false);
  EXPECT_FALSE(s.gradients()[0].defined()) << "the layers learn from backwards";
  EXPECT_TRUE(s.gradients()[2].defined());
  const at::Tensor of_head = s.gradients()[2].clone();
  s.backward(0, {.gradients = {random({4, 5}, 2)}});
  EXPECT_TRUE(s.gradients()[0].defined());
  EXPECT_TRUE(at::equal(s.gradients()[2], of_head)) << "a backward adds nothing to the head";
}

TEST_F(StageHead, SeesTheFirstOfSeveralOutputs) {
  const auto own_loss = [&](Stage s) {
    s.forward(0, {x_.clone()}, {}, true);
    s.head(0, y_, {}, 1, true);
    Tensors of_input = s.backward(0, {.own_loss = true, .input_gradient = true});
    return std::vector<at::Tensor>{of_input.at(0), s.gradients()[0].clone()};
  };
  const auto alone = own_loss(stage({linear(3, 5)}, false, linear(5, 2)));
  const auto among_others =
      own_loss(stage({linear(3, 5), stash(), stash(), stash()}, false, linear(5, 2)));
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(alone[i], among_others[i]));
}

TEST_F(StageHead, PassesItsLossOnToTheLayers) {
  Stage s = stage({linear(3, 5)}, false, linear(5, 2));
  s.forward(0, {x_.clone()}, {}, false);
  const double loss = s.head(0, y_, {}, 0.5, true).item<double>();
  s.backward(0, {.own_loss = true});
  std::vector<at::Tensor> w;
  for (const auto& [name, tensor] : s.named_parameters())
    w.push_back(tensor.clone().set_requires_grad(true));
  const at::Tensor whole = (*loss_)(at::linear(at::linear(x_, w[0], w[1]), w[2], w[3]), y_);
  EXPECT_NEAR(loss, whole.item<double>(), kFloat64Relative);
  const auto expected = torch::autograd::grad({0.5 * whole}, w);
  for (std::size_t p = 0; p < 4; ++p)
    EXPECT_LT(relative_error(s.gradients()[p], expected[p]), kFloat64Relative) << p;
}

TEST_F(StageHead, StartsFromTheFirstOfSeveralTensors) {
  const auto gradients = [&](LayerPtr between) {
    Stage s = stage({linear(3, 4), std::move(between), linear(4, 5)}, false, linear(5, 2));
    s.forward(0, {x_.clone()}, {}, false);
    s.head(0, y_, {}, 0.5, true);
    s.backward(0, {.own_loss = true});
    return s.gradients();
  };
  const auto one = gradients(activation(Activation::Identity)), two = gradients(stash());
  for (std::size_t p = 0; p < 6; ++p) EXPECT_TRUE(at::equal(two[p], one[p])) << p;
}

TEST_F(StageState, SharesNoBufferBetweenReplicasAndVersionsNone) {
  Stage one = stage({linear(3, 3), batch_norm(3)}), two = stage({linear(3, 3), batch_norm(3)});
  one.forward(0, {x_.clone()}, {}, false);
  const at::Tensor mean = value(one, "1.running_mean");
  EXPECT_GT(mean.abs().max().item<double>(), 0);
  EXPECT_EQ(value(two, "1.running_mean").abs().max().item<double>(), 0);
  one.backward(0, {.gradients = {random({4, 3}, 2)}});
  one.update(false, 0.1);
  one.use({0, 0, 0});
  EXPECT_TRUE(at::equal(value(one, "1.running_mean"), mean))
      << "an older version has the same ones";
}

TEST_F(StageState, LeavesBuffersAloneInEvaluation) {
  Stage s = stage({linear(3, 3), batch_norm(3)});
  s.forward(0, {x_.clone()}, {.training = false}, false);
  EXPECT_EQ(value(s, "1.running_mean").abs().max().item<double>(), 0);
  EXPECT_THROW(s.backward(0, {.gradients = {x_}}), Error) << "an evaluation keeps no graph";
}

TEST_F(StageState, IsForgottenByAnUpdateAsFarAsGradientsGo) {
  Stage s = stage({linear(3, 2)});
  const at::Tensor before = value(s, "0.weight"), g = random({4, 2}, 2);
  s.forward(0, {x_.clone()}, {}, false);
  s.backward(0, {.gradients = {g}});
  s.update(true, 0.1);
  EXPECT_FALSE(s.gradients()[0].defined());
  EXPECT_LT(relative_error(value(s, "0.weight"), before - 0.1 * at::matmul(g.t(), x_)),
            kFloat64Relative);
}

TEST_F(StageState, ComputesWithTheVersionThatIsAskedFor) {
  Stage s = stage({linear(3, 2)});
  const at::Tensor old = s.forward(0, {x_.clone()}, {.training = false}, false)[0];
  s.forward(0, {x_.clone()}, {}, false);
  s.backward(0, {.gradients = {random({4, 2}, 2)}});
  s.update(false, 0.1);
  s.use({1, 0, 0});
  EXPECT_FALSE(at::equal(s.forward(1, {x_.clone()}, {.training = false}, false)[0], old));
  s.use({0, 0, 0});
  EXPECT_TRUE(at::equal(s.forward(2, {x_.clone()}, {.training = false}, false)[0], old));
}

TEST_F(StageState, IsTheSameWhereAnUpdatePredictsForThePassAfterIt) {
  auto trained = [&](bool in_update) {
    Stage s = stage({linear(3, 2)}, false, linear(2, 2), true);  // the head learns nothing
    for (int version = 0; version < 2; ++version) {
      s.forward(version, {x_.clone()}, {}, false);
      s.backward(version, {.gradients = {random({4, 2}, 2)}});
      const WeightKey key{version + 1, 3, 0};
      const Stage::Ahead ahead{key, rule_, 0.05};
      s.update(true, 0.1, in_update ? std::optional(ahead) : std::nullopt);
      s.use(key, in_update ? std::nullopt : std::optional(ahead));
      if (version == 0) s.weights().free(key);
    }
    return s.weights().version({2, 3, 0}).clone();
  };
  const at::Tensor predicted = trained(true);
  EXPECT_TRUE(at::equal(predicted, trained(false)));
}

TEST_F(StageState, IsExtrapolatedBackAlongTheRunningDriftOfItsWeights) {
  const PredictionRule drift{.kind = PredictionRule::Kind::Drift, .decay = 0.25};
  for (const bool in_update : {false, true})
    for (const bool in_place : {false, true}) {
      Stage s({.layers = named({linear(3, 2)}),
               .options = at::kDouble,
               .optimizer = optimizer_.get(),
               .loss = loss_.get(),
               .drift_decay = drift.decay},
              1);
      std::vector<at::Tensor> w{s.weights().latest().clone()};
      const WeightKey back{2, -3, 0};
      const Stage::Ahead ahead{back, drift, 0.1};
      for (int version = 0; version < 2; ++version) {
        s.use({version, 0, 0});
        s.forward(version, {x_.clone()}, {}, false);
        s.backward(version, {.gradients = {random({4, 2}, 2)}});
        const bool predict = in_update && version == 1;
        s.update(in_place, 0.1, predict ? std::optional(ahead) : std::nullopt);
        w.push_back(s.weights().latest().clone());
      }
      s.use(back, in_update ? std::nullopt : std::optional(ahead));
      const at::Tensor expected = w[2] - 3 * (0.25 * 0.75 * (w[1] - w[0]) + 0.75 * (w[2] - w[1]));
      EXPECT_LT(relative_error(s.weights().version(back), expected), kFloat64Relative);
    }
}

TEST_F(StageState, NamesLayersInOrderTheHeadLast) {
  const Stage s = stage({linear(3, 3), batch_norm(3)}, false, linear(3, 2));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : s.named_state()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean",
                                      "1.running_var", "heads.0.weight", "heads.0.bias"}));
}

TEST_F(StageWithoutParameters, RelaysAndUpdatesNothing) {
  Stage s = stage({activation(Activation::Tanh)});
  s.use({0, 0, 0});
  const Tensors y = s.forward(0, {x_.clone()}, {}, true);
  EXPECT_TRUE(at::equal(y[0], x_.tanh()));
  const Tensors of_input =
      s.backward(0, {.gradients = {at::ones_like(x_)}, .input_gradient = true});
  EXPECT_LT(relative_error(of_input[0], 1 - x_.tanh().pow(2)), kFloat64Relative);
  s.update(false, 0.1);
  s.use({0, 0, 0});
  s.weights().free({0, 0, 0});
  EXPECT_EQ(s.weights().latest_number(), 1);
}

TEST_F(StageWithoutParameters, FreesThePredictionsItIsAskedFor) {
  Stage s = stage({activation(Activation::Tanh)}, false, nullptr, true);
  s.use({0, 2, 0}, Stage::Ahead{{0, 2, 0}, rule_, 0.1});
  EXPECT_NO_THROW(s.weights().free({0, 2, 0}));
}

}  // namespace
}  // namespace pipewright::test
