// SPDX-License-Identifier: Apache-2.0
// One step of each optimizer: PyTorch's formulas, the same on every path.
#include "core/optim/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/unit/optim/optimizer_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

class Steps {
 public:
  /// weights after five steps with the optimizer, parameter 0.
  static at::Tensor of(const std::string& name, const std::string& options) {
    const auto optimizer = make_optimizer(name, options);
    Training training(*optimizer);
    for (std::uint64_t t = 1; t <= 5; ++t) training.step(training.gradients(t), 0.1);
    return training.part(training.weights, 0).clone();
  }
  /// The same with `formula(w, g, t)` → next w.
  template <class Formula>
  static at::Tensor by(Formula formula) {
    at::Tensor w = random({3, 5}, 100);
    for (std::uint64_t t = 1; t <= 5; ++t)
      w = formula(w, random({3, 5}, 10 * t), static_cast<double>(t));
    return w;
  }
};

TEST(Sgd, FollowsPyTorch) {
  at::Tensor v;
  expect_near(Steps::of("sgd", "{momentum: 0.9, dampening: 0.3, weight_decay: 0.1}"),
              Steps::by([&](const at::Tensor& w, at::Tensor g, double t) {
                g = g + 0.1 * w;
                v = t == 1 ? g : 0.9 * v + (1 - 0.3) * g;  // the first step is not dampened
                return w - 0.1 * v;
              }),
              tolerance::kOptimizerSteps);
}

TEST(Sgd, WithoutMomentumIsPlain) {
  expect_near(Steps::of("sgd", "{weight_decay: 0.1}"),
              Steps::by([](const at::Tensor& w, const at::Tensor& g, double) {
                return w - 0.1 * (g + 0.1 * w);
              }),
              tolerance::kOptimizerSteps);
}

TEST(Sgd, WithNesterovLooksAhead) {
  at::Tensor v = at::zeros({3, 5}, at::kDouble);
  expect_near(Steps::of("sgd", "{momentum: 0.8, nesterov: true, weight_decay: 0.1}"),
              Steps::by([&](const at::Tensor& w, at::Tensor g, double) {
                g = g + 0.1 * w;
                v = 0.8 * v + g;
                return w - 0.1 * (g + 0.8 * v);
              }),
              tolerance::kOptimizerSteps);
}

/// PyTorch's Adam on a decayed gradient or on decayed weights.
at::Tensor adam_steps(double beta1, double beta2, double eps, double l2, double decoupled) {
  at::Tensor m = at::zeros({3, 5}, at::kDouble), u = m.clone();
  return Steps::by([&](const at::Tensor& w, at::Tensor g, double t) {
    g = g + l2 * w;
    m = beta1 * m + (1 - beta1) * g;
    u = beta2 * u + (1 - beta2) * g * g;
    const at::Tensor denominator = u.sqrt() / std::sqrt(1 - std::pow(beta2, t)) + eps;
    return w * (1 - 0.1 * decoupled) - 0.1 / (1 - std::pow(beta1, t)) * m / denominator;
  });
}

TEST(Adam, FollowsPyTorch) {
  expect_near(Steps::of("adam", "{}"), adam_steps(0.9, 0.999, 1e-8, 0, 0),
              tolerance::kOptimizerSteps);
  expect_near(Steps::of("adam", "{betas: [0.8, 0.9], eps: 0.001, weight_decay: 0.1}"),
              adam_steps(0.8, 0.9, 1e-3, 0.1, 0), tolerance::kOptimizerSteps);
}

TEST(AdamW, FollowsPyTorch) {
  expect_near(Steps::of("adamw", "{}"), adam_steps(0.9, 0.999, 1e-8, 0, 0.01),
              tolerance::kOptimizerSteps);
  expect_near(Steps::of("adamw", "{weight_decay: 0.5}"), adam_steps(0.9, 0.999, 1e-8, 0, 0.5),
              tolerance::kOptimizerSteps);
}

TEST(RmsProp, FollowsPyTorch) {
  at::Tensor u = at::zeros({3, 5}, at::kDouble), b = u.clone();
  expect_near(Steps::of("rmsprop", "{alpha: 0.8, eps: 0.001, momentum: 0.7, weight_decay: 0.1}"),
              Steps::by([&](const at::Tensor& w, at::Tensor g, double) {
                g = g + 0.1 * w;
                u = 0.8 * u + 0.2 * g * g;
                b = 0.7 * b + g / (u.sqrt() + 0.001);
                return w - 0.1 * b;
              }),
              tolerance::kOptimizerSteps);
}

TEST(RmsProp, KeepsAMomentumOnlyWhereThereIsOneOrAPredictionReadsIt) {
  const auto plain = make_optimizer("rmsprop", "{alpha: 0.8, eps: 0.001}");
  EXPECT_EQ(plain->slot_names(false), (std::vector<std::string>{"square_avg"}));
  EXPECT_EQ(plain->slot_names(true), (std::vector<std::string>{"square_avg", "momentum_buffer"}));
  EXPECT_EQ(make_optimizer("rmsprop", "{momentum: 0.7}")->slot_names(false).size(), 2U);
  at::Tensor u = at::zeros({3, 5}, at::kDouble);
  expect_near(Steps::of("rmsprop", "{alpha: 0.8, eps: 0.001}"),
              Steps::by([&](const at::Tensor& w, const at::Tensor& g, double) {
                u = 0.8 * u + 0.2 * g * g;
                return w - 0.1 * g / (u.sqrt() + 0.001);
              }),
              tolerance::kOptimizerSteps);
}

TEST(Lion, FollowsItsAuthors) {
  at::Tensor m = at::zeros({3, 5}, at::kDouble);
  expect_near(Steps::of("lion", "{betas: [0.8, 0.95], weight_decay: 0.1}"),
              Steps::by([&](const at::Tensor& w, const at::Tensor& g, double) {
                const at::Tensor direction = at::sign(0.8 * m + 0.2 * g);
                m = 0.95 * m + 0.05 * g;
                return w * (1 - 0.1 * 0.1) - 0.1 * direction;
              }),
              tolerance::kOptimizerSteps);
}

TEST(Lion, MovesEveryWeightByTheLearningRate) {
  const auto optimizer = make_optimizer("lion", "{}");
  Training training(*optimizer);
  for (std::uint64_t t = 1; t <= 3; ++t) {
    const at::Tensor before = training.part(training.weights, 0).clone();
    training.step(training.gradients(t), 0.5);
    expect_near((training.part(training.weights, 0) - before).abs(), at::full({3, 5}, 0.5),
                tolerance::kPrediction);
  }
}

TEST(Lion, KeepsAGradientThatIsNoNumber) {
  const auto optimizer = make_optimizer("lion", "{}");
  Training training(*optimizer);
  std::vector<at::Tensor> gradients = training.gradients(1);
  gradients[0].view(-1)[7] = std::numeric_limits<double>::quiet_NaN();
  training.step(gradients, 0.5);
  const at::Tensor wrong = training.part(training.weights, 0).isnan();
  EXPECT_EQ(wrong.sum().item<int>(), 1);
  EXPECT_TRUE(wrong.view(-1)[7].item<bool>());
}

TEST(SpikeCompensation, WithoutDelayIsSgdAndWithOneNesterovToTheBit) {
  for (const auto& [delay, options] :
       {std::pair("0", "{momentum: 0.9, weight_decay: 0.1}"),
        std::pair("1", "{momentum: 0.9, nesterov: true, weight_decay: 0.1}")})
    EXPECT_TRUE(
        at::equal(Steps::of("spike_compensation",
                            concat("{momentum: 0.9, weight_decay: 0.1, delay: ", delay, "}")),
                  Steps::of("sgd", options)))
        << delay;
}

/// Two updates make up for a spike's two that were missed: 1 + μ + μ² of it is applied at once.
TEST(SpikeCompensation, AppliesAtOnceWhatASpikeWouldHaveMadeMeanwhile) {
  const auto optimizer = make_optimizer("spike_compensation", "{momentum: 0.5, delay: 2}");
  Training training(*optimizer);
  const at::Tensor before = training.weights.clone(), spike = training.gradients(1)[0];
  training.step({spike, {}}, 0.1);
  expect_near(training.part(training.weights, 0),
              training.part(before, 0) - 0.1 * (1 + 0.5 + 0.25) * spike, tolerance::kPrediction);
  // Later steps are those of the spike's fourth one on: μ³, μ⁴, …
  const at::Tensor first = training.weights.clone();
  training.step({at::zeros_like(spike), {}}, 0.1);
  expect_near(training.part(training.weights, 0), training.part(first, 0) - 0.1 * 0.125 * spike,
              tolerance::kPrediction);
}

/// On a quadratic loss with gradients D updates late, weights follow the recurrence of geometric
/// prediction: with G = μ + … + μᴰ,
///   w(t+1) − w(t) − μ(w(t) − w(t−1)) = −lr·h·((1 + G) w(t−D) − G w(t−D−1)).
TEST(SpikeCompensation, FollowsTheRecurrenceOfGeometricPredictionOnAQuadratic) {
  constexpr double kCurvature = 1.3, kMomentum = 0.8, kRate = 0.05;
  for (const int delay : {1, 2, 5}) {
    const auto optimizer = make_optimizer(
        "spike_compensation", concat("{momentum: ", kMomentum, ", delay: ", delay, "}"));
    Training training(*optimizer, false, false, flat_layout({{"w", {1}}}, 8));
    std::vector<double> w{training.weights[0].item<double>()};
    for (int t = 0; t < 40; ++t) {
      const double read = w[static_cast<std::size_t>(std::max(0, t - delay))];
      training.step({at::full({1}, kCurvature * read, at::kDouble)}, kRate);
      w.push_back(training.weights[0].item<double>());
    }
    double sum = 0;
    for (int j = 1; j <= delay; ++j) sum += std::pow(kMomentum, j);
    for (std::size_t t = static_cast<std::size_t>(delay) + 1; t < 40; ++t) {
      const double late = w[t - static_cast<std::size_t>(delay)],
                   later = w[t - static_cast<std::size_t>(delay) - 1];
      EXPECT_NEAR(w[t + 1] - w[t] - kMomentum * (w[t] - w[t - 1]),
                  -kRate * kCurvature * ((1 + sum) * late - sum * later), tolerance::kPrediction)
          << delay << ", " << t;
    }
  }
}

TEST(NAdamW, FollowsPyTorch) {
  at::Tensor m = at::zeros({3, 5}, at::kDouble), u = m.clone();
  double product = 1;
  const auto momentum = [](double t) { return 0.8 * (1 - 0.5 * std::pow(0.96, t * 0.3)); };
  expect_near(Steps::of("nadamw",
                        "{betas: [0.8, 0.9], eps: 0.001, weight_decay: 0.5, momentum_decay: 0.3}"),
              Steps::by([&](const at::Tensor& w, const at::Tensor& g, double t) {
                m = 0.8 * m + 0.2 * g;
                u = 0.9 * u + 0.1 * g * g;
                product *= momentum(t);
                const double next = momentum(t + 1);
                const at::Tensor divisor = (u / (1 - std::pow(0.9, t))).sqrt() + 0.001;
                return w * (1 - 0.1 * 0.5) - 0.1 * (1 - momentum(t)) / (1 - product) * g / divisor -
                       0.1 * next / (1 - product * next) * m / divisor;
              }),
              tolerance::kOptimizerSteps);
}

/// The product of all momenta is not kept: it is made again in every step, as far as it matters.
TEST(NAdamW, TakesTheStepsOfALongTraining) {
  const auto optimizer = make_optimizer("nadamw", "{betas: [0.5, 0.9], eps: 0.001}");
  Training training(*optimizer, false, false, flat_layout({{"w", {1}}}, 8));
  double w = training.weights[0].item<double>(), m = 0, u = 0, product = 1;
  for (int t = 1; t <= 200; ++t) {
    const double g = std::sin(0.7 * t);
    training.step({at::full({1}, g, at::kDouble)}, 0.01);
    const auto momentum = [](int step) { return 0.5 * (1 - 0.5 * std::pow(0.96, step * 0.004)); };
    m = 0.5 * m + 0.5 * g;
    u = 0.9 * u + 0.1 * g * g;
    product *= momentum(t);
    const double divisor = std::sqrt(u / (1 - std::pow(0.9, t))) + 0.001;
    w -= 0.01 *
         ((1 - momentum(t)) / (1 - product) * g +
          momentum(t + 1) / (1 - product * momentum(t + 1)) * m) /
         divisor;
  }
  EXPECT_NEAR(training.weights[0].item<double>(), w, 200 * tolerance::kPrediction);
}

/// Optimizers with a momentum, with M for it.
const std::vector<std::pair<std::string, std::string>> kWithMomentum{
    {"sgd", "momentum: M, dampening: 0.25"},
    {"sgd", "momentum: M, nesterov: true"},
    {"rmsprop", "momentum: M"},
    {"spike_compensation", "momentum: M, delay: 2"},
    {"adam", "betas: [M, 0.9]"},
    {"adamw", "betas: [M, 0.9]"},
    {"nadamw", "betas: [M, 0.9]"},
    {"adan", "betas: [M, 0.8, 0.9]"},
    {"muon", "momentum: M"},
    {"soap", "betas: [M, 0.9]"}};

/// 0.5 + min(τ, 4)·(0.75 − 0.5)/4, which is exact.
TEST(MomentumByDelay, MakesTheStepsAndPredictionsOfThatMomentum) {
  for (const auto& [name, options] : kWithMomentum)
    for (const auto& [delay, momentum] :
         std::map<int, std::string>{{0, "0.5"}, {1, "0.5625"}, {2, "0.625"}, {9, "0.75"}}) {
      const auto with = [&](const std::string& value, const char* more = "") {
        std::string text = options;
        text.replace(text.find('M'), 1, value);
        return make_optimizer(name, concat("{", text, more, "}"));
      };
      const auto of_all = with("0.5", ", momentum_by_delay: 0.75"), expected = with(momentum);
      const auto own = of_all->of_stage(delay, 4);
      ASSERT_NE(own, nullptr) << name;
      Training a(*own, true), b(*expected, true), first(*of_all, true);
      for (std::uint64_t t = 1; t <= 3; ++t)
        for (Training* each : {&a, &b, &first}) each->step(each->gradients(t));
      EXPECT_TRUE(at::equal(a.weights, b.weights)) << name << " " << delay;
      EXPECT_TRUE(at::equal(a.predicted(3), b.predicted(3))) << name << " " << delay;
      EXPECT_EQ(at::equal(a.weights, first.weights), delay == 0) << name << " " << delay;
    }
}

TEST(MomentumByDelay, IsNoneUnlessItIsGiven) {
  for (const auto& [name, options] : kOptimizers)
    EXPECT_EQ(make_optimizer(name, options)->of_stage(3, 4), nullptr) << name;
}

/// Adan as its paper has it: with a proximal decay, or with AdamW's.
at::Tensor adan_steps(bool proximal) {
  at::Tensor m = at::zeros({3, 5}, at::kDouble), v = m.clone(), n = m.clone(), previous;
  return Steps::by([&, previous](const at::Tensor& w, const at::Tensor& g, double t) mutable {
    const at::Tensor difference = t == 1 ? at::zeros_like(g) : g - previous;
    m = 0.9 * m + (1 - 0.9) * g;
    v = 0.8 * v + (1 - 0.8) * difference;
    n = 0.95 * n + (1 - 0.95) * (g + 0.8 * difference).square();
    previous = g;
    const at::Tensor divisor = (n / (1 - std::pow(0.95, t))).sqrt() + 0.001;
    const at::Tensor move =
        0.1 * (m / (1 - std::pow(0.9, t)) + 0.8 * v / (1 - std::pow(0.8, t))) / divisor;
    return proximal ? (w - move) / (1 + 0.1 * 0.5) : w * (1 - 0.1 * 0.5) - move;
  });
}

TEST(Adan, FollowsItsAuthors) {
  const std::string options = "betas: [0.9, 0.8, 0.95], eps: 0.001, weight_decay: 0.5";
  expect_near(Steps::of("adan", "{" + options + "}"), adan_steps(true), tolerance::kOptimizerSteps);
  expect_near(Steps::of("adan", "{" + options + ", proximal: false}"), adan_steps(false),
              tolerance::kOptimizerSteps);
}

TEST(Optimizers, StepAlikeInTheFusedLoopAndOverTensors) {
  for (const auto& [name, options] : kOptimizers) {
    const auto fused = make_optimizer(name, options),
               tensors = make_optimizer_elsewhere(name, options);
    Training a(*fused, true, true), b(*tensors, true, true);
    for (std::uint64_t t = 1; t <= 5; ++t) {
      a.step(a.gradients(t));
      b.step(b.gradients(t));
    }
    expect_near(a.weights, b.weights, tolerance::kOptimizerSteps, name + options);
    expect_near(a.state.last_gradient, b.state.last_gradient, tolerance::kOptimizerSteps,
                name + options);
    for (std::size_t s = 0; s < a.state.slots.size(); ++s)
      expect_near(a.state.slots[s], b.state.slots[s], tolerance::kOptimizerSteps, name + options);
    expect_near(a.predicted(3), b.predicted(3), tolerance::kOptimizerSteps, name + options);
  }
}

/// On another device parameters without gaps between them are stepped together; a parameter without
/// a gradient stays. Each has the bits of a training of its own.
TEST(Optimizers, StepParametersTogetherToTheBitsOfEachAlone) {
  const NamedShapes shapes{{"a.weight", {4, 4}},
                           {"b.weight", {8}},
                           {"c.bias", {7}},
                           {"d.weight", {16}},
                           {"e.weight", {2, 8}}};
  for (const auto& [name, options] : kElementwise) {
    const auto optimizer = make_optimizer_elsewhere(name, options);
    Training together(*optimizer, false, true, flat_layout(shapes, 8));
    std::vector<Training> alone;
    for (std::size_t p = 0; p < shapes.size(); ++p) {
      alone.emplace_back(*optimizer, false, true, flat_layout({shapes[p]}, 8));
      alone[p].weights.copy_(
          together.weights.narrow(0, together.layout.entries[p].offset, alone[p].layout.size));
    }
    for (std::uint64_t t = 1; t <= 3; ++t) {
      std::vector<at::Tensor> gradients = together.gradients(t);
      if (t == 2) gradients[3].reset();
      together.step(gradients);
      for (std::size_t p = 0; p < shapes.size(); ++p)
        if (gradients[p].defined()) {
          alone[p].state.steps = static_cast<std::int64_t>(t) - 1;
          alone[p].step({gradients[p]});
        }
    }
    for (std::size_t p = 0; p < shapes.size(); ++p) {
      EXPECT_TRUE(at::equal(together.part(together.weights, p), alone[p].part(alone[p].weights, 0)))
          << name << options << shapes[p].first;
      for (std::size_t s = 0; s < together.state.slots.size(); ++s)
        EXPECT_TRUE(at::equal(together.part(together.state.slots[s], p),
                              alone[p].part(alone[p].state.slots[s], 0)))
            << name << options << shapes[p].first;
    }
  }
}

/// The copies of the momentum, which stand for the kernels of a step.
TEST(Optimizers, StepManyParametersWithTheKernelsOfOne) {
  static int copies = 0;
  NamedShapes shapes;
  for (int i = 0; i < 50; ++i) shapes.emplace_back(concat("w", i), std::vector<std::int64_t>{16});
  const auto optimizer = make_optimizer_elsewhere("sgd", "{momentum: 0.9}");
  Training training(*optimizer, false, false, flat_layout(shapes, 8));
  const auto gradients = training.gradients(1);
  const auto callback = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
        if (std::string_view(call.name()) == "aten::clone") ++copies;
        return nullptr;
      }));
  training.step(gradients);
  at::removeCallback(callback);
  EXPECT_EQ(copies, 1);
}

/// A product of matrices may add in another order with more threads, as it may in a layer.
TEST(Optimizers, GiveTheSameBitsWithOneAndTwoThreadsWhereTheyAreElementwise) {
  const FlatLayout large = flat_layout({{"a", {3, 40'000}}, {"b", {70'001}}}, 8);
  for (const auto& [name, options] : kElementwise) {
    const auto optimizer = make_optimizer(name, options);
    auto trained = [&](int threads) {
      at::set_num_threads(threads);
      Training training(*optimizer, true, false, large);
      for (std::uint64_t t = 1; t <= 2; ++t) training.step(training.gradients(t));
      return std::pair(training.weights, training.predicted(2));
    };
    const auto one = trained(1), two = trained(2);
    at::set_num_threads(1);
    EXPECT_TRUE(at::equal(one.first, two.first)) << name << options;
    EXPECT_TRUE(at::equal(one.second, two.second)) << name << options;
  }
}

TEST(Optimizers, StepAlikeInPlaceAndIntoANewVersion) {
  for (const auto& [name, options] : kOptimizers) {
    const auto optimizer = make_optimizer(name, options);
    Training a(*optimizer), b(*optimizer);
    at::Tensor next = at::zeros_like(b.weights);
    const at::Tensor before = b.weights.clone();
    const auto gradients = a.gradients(1);
    a.step(gradients);
    optimizer->step({.layout = b.layout,
                     .gradients = gradients,
                     .weights = b.weights,
                     .next = next,
                     .state = b.state,
                     .lr = 0.1});
    EXPECT_TRUE(at::equal(a.weights, next)) << name << options;
    EXPECT_TRUE(at::equal(b.weights, before)) << name << options;
  }
}

TEST(Optimizers, LeaveAParameterWithoutGradientAlone) {
  for (const bool in_place : {true, false})
    for (const auto& [name, options] : kOptimizers) {
      const auto optimizer = make_optimizer(name, options);
      Training training(*optimizer);
      const std::vector<at::Tensor> gradients{{}, random({7}, 3)};
      for (std::uint64_t t = 1; t < updates_to_move(name); ++t) training.step(gradients);
      const at::Tensor before = training.weights.clone();
      at::Tensor next = in_place ? training.weights : at::full_like(training.weights, 7);
      optimizer->step({.layout = training.layout,
                       .gradients = gradients,
                       .weights = training.weights,
                       .next = next,
                       .state = training.state,
                       .lr = 0.1});
      EXPECT_TRUE(at::equal(training.part(next, 0), training.part(before, 0))) << name << options;
      EXPECT_FALSE(at::equal(training.part(next, 1), training.part(before, 1))) << name << options;
      for (const at::Tensor& slot : training.state.slots)
        EXPECT_EQ(training.part(slot, 0).abs().max().item<double>(), 0) << name << options;
    }
}

TEST(Optimizers, TakeGradientsInAnyMemoryOrder) {
  const auto optimizer = make_optimizer("sgd", "{momentum: 0.9}");
  Training a(*optimizer), b(*optimizer);
  const at::Tensor g = random({3, 5}, 1);
  a.step({g, {}});
  b.step({g.t().contiguous().t(), {}});
  EXPECT_TRUE(at::equal(a.weights, b.weights));
}

TEST(Optimizers, WorkInFloat32) {
  for (const auto& [name, options] : kOptimizers) {
    const auto optimizer = make_optimizer(name, options);
    Training exact(*optimizer);
    const FlatLayout layout = flat_layout({{"a", {3, 5}}}, 4);
    at::Tensor weights = at::zeros({layout.size});
    weights.narrow(0, 0, 15).copy_(random({15}, 100));
    OptimizerState state = fresh_state(*optimizer, layout, at::kFloat, false, false);
    const std::vector<at::Tensor> gradient{random({3, 5}, 10).to(at::kFloat)};
    optimizer->step({.layout = layout,
                     .gradients = gradient,
                     .weights = weights,
                     .next = weights,
                     .state = state,
                     .lr = 0.1});
    exact.step({random({3, 5}, 10), {}});
    expect_near(weights.narrow(0, 0, 15).to(at::kDouble), exact.part(exact.weights, 0).flatten(),
                kFloat32Relative, name + options);
  }
}

}  // namespace
}  // namespace pipewright::test
