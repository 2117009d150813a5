// SPDX-License-Identifier: Apache-2.0
// Stages in mixed precision: copies of the weights, sums of gradients, and how far the results of
// single layers are from those of their formulas.
#include <bit>
#include <cmath>

#include "core/nn/precision.h"
#include "core/optim/bfloat16_copy.h"
#include "tests/unit/nn/layers_reference.h"
#include "tests/unit/optim/optimizer_fixture.h"
#include "tests/unit/stage/stage_fixture.h"

namespace pipewright::test {
namespace {

/// Each sign, exponent and mantissa that is kept, with what decides about rounding behind it.
TEST(Bfloat16Copy, RoundsLikeLibTorch) {
  std::vector<float> numbers;
  for (std::uint32_t kept = 0; kept < 1U << 16; ++kept)
    for (const std::uint32_t rest : {0x0U, 0x1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      numbers.push_back(std::bit_cast<float>(kept << 16 | rest));
  std::vector<std::uint16_t> copies(numbers.size());
  copy_to_bfloat16(numbers.data(), numbers.size(), copies.data());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(copies[i], c10::BFloat16(numbers[i]).x) << numbers[i];
}

class MixedStage : public StageTest {
 protected:
  static Stage stage(std::vector<LayerPtr> layers, const Optimizer& optimizer, const Loss& loss,
                     bool predicts = false) {
    return Stage({.layers = named(std::move(layers)),
                  .options = at::kFloat,
                  .narrow = at::kBFloat16,
                  .optimizer = &optimizer,
                  .loss = &loss,
                  .predicts = predicts},
                 1);
  }

  /// Expects the leaves to hold that version, exact ones as it is and the others rounded.
  static void expect_leaves_of(Stage& stage, const WeightKey& key, const std::string& what) {
    stage.weights().install(key);
    const at::Tensor flat = stage.weights().version(key);
    ASSERT_EQ(flat.scalar_type(), at::kFloat);
    const auto leaves = stage.weights().leaves();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const FlatLayout::Entry& entry = stage.layout().entries[i];
      const at::Tensor of_version = flat.narrow(0, entry.offset, entry.size).view(entry.shape);
      EXPECT_EQ(leaves[i].scalar_type(), entry.exact ? at::kFloat : at::kBFloat16) << what;
      EXPECT_TRUE(at::equal(leaves[i].detach(), of_version.to(leaves[i].scalar_type())))
          << what << ": " << entry.name;
    }
  }

  /// A convolution, batch norm, linear layer: 3 × 4 × 4 to 37 numbers, of which blocks do not share
  /// a length.
  static std::vector<LayerPtr> layers() {
    return {convolution(3, 5, {.padding = 1}), batch_norm(5), linear(80, 37, {.flatten = true})};
  }
};

at::Tensor images() {
  return random({4, 3, 4, 4}, 1).to(at::kBFloat16);
}

TEST_F(MixedStage, MakesACopyOfEveryVersionAndPrediction) {
  for (const auto& [name, options] : kOptimizers)
    for (const bool in_place : {true, false})
      for (const auto kind : {PredictionRule::Kind::Optimizer, PredictionRule::Kind::Drift}) {
        const auto optimizer = make_optimizer(name, options);
        const bool drift = kind == PredictionRule::Kind::Drift;
        Stage s({.layers = named(layers()),
                 .options = at::kFloat,
                 .narrow = at::kBFloat16,
                 .optimizer = optimizer.get(),
                 .loss = loss_.get(),
                 .predicts = true,
                 .drift_decay = drift ? std::optional(0.5) : std::nullopt},
                1);
        const std::string what = concat(name, options, in_place ? " in place" : "");
        const PredictionRule rule{.kind = kind, .decay = 0.5};
        expect_leaves_of(s, {0, 0, 0}, what);
        for (int version = 1; version < 4; ++version) {
          s.use({version - 1, 0, 0});
          s.forward(0, {images()}, {}, false);
          s.backward(0, {.gradients = {at::ones({4, 37}, at::kBFloat16)}});
          const Stage::Ahead ahead{{version, 2, 0}, rule, 0.1};
          s.update(in_place, 0.1, version == 1 ? std::nullopt : std::optional(ahead));
          expect_leaves_of(s, {version, 0, 0}, what);
          if (version == 1) s.use(ahead.key, ahead);
          expect_leaves_of(s, {version, 2, 0}, what + " predicted");
          const bool begins = name == "soap" && version == 1;  // SOAP's first update moves nothing
          EXPECT_EQ(at::equal(s.weights().version({version, 2, 0}), s.weights().latest()), begins);
          if (!in_place) expect_leaves_of(s, {version - 1, 0, 0}, what + " before");
          s.weights().free({version, 2, 0});
          if (!in_place) s.weights().free({version - 1, 0, 0});
        }
      }
}

/// The pass over memory that makes a step cannot make the copies where a rule changes it behind.
TEST_F(MixedStage, MakesCopiesOfWeightsThatARuleHasCorrected) {
  for (const auto& [name, options] : kOptimizers)
    for (const bool in_place : {true, false})
      for (const auto kind : {PredictionRule::Kind::Optimizer, PredictionRule::Kind::Drift}) {
        const auto optimizer = make_optimizer(name, options);
        const bool drift = kind == PredictionRule::Kind::Drift;
        Stage s({.layers = named(layers()),
                 .options = at::kFloat,
                 .narrow = at::kBFloat16,
                 .optimizer = optimizer.get(),
                 .predicts = true,
                 .drift_decay = drift ? std::optional(0.5) : std::nullopt,
                 .gradient_rules = {{"error_feedback", made_rule("error_feedback", "{}")}}},
                1);
        const std::string what = concat(name, options, in_place ? " in place" : "");
        for (int version = 1; version < 4; ++version) {
          s.use({version - 1, 0, 0});
          s.forward(0, {images()}, {}, false);
          s.backward(0, {.gradients = {at::ones({4, 37}, at::kBFloat16)}});
          const WeightKey ahead{version, 2, 0};
          const bool predicts = version != 2;
          std::optional<Stage::Ahead> prediction;
          if (predicts) prediction = Stage::Ahead{ahead, {.kind = kind, .decay = 0.5}, 0.1};
          s.update(in_place, 0.1, prediction);
          expect_leaves_of(s, {version, 0, 0}, what);
          if (predicts) {
            expect_leaves_of(s, ahead, what + " predicted");
            s.weights().free(ahead);
          }
          if (!in_place) s.weights().free({version - 1, 0, 0});
        }
      }
}

TEST_F(MixedStage, ComputesWithWeightsThatWereLoaded) {
  Stage s = stage(layers(), *optimizer_, *loss_);
  for (const auto& [name, tensor] : s.named_parameters()) tensor.fill_(0.3);
  s.weights().rewind();
  expect_leaves_of(s, {0, 0, 0}, "loaded");
}

TEST_F(MixedStage, AddsGradientsInTheWideFormat) {
  Stage s = stage(layers(), *optimizer_, *loss_);
  const auto gradients_of = [&](std::uint64_t seed, double scale) {
    s.use({0, 0, 0});
    s.forward(0, {images()}, {}, false);
    const at::Tensor of_output = random({4, 37}, seed).to(at::kBFloat16);
    s.backward(0, {.gradients = {of_output}, .scale = scale});
  };
  std::vector<std::vector<at::Tensor>> parts;
  for (const std::uint64_t seed : {2, 3, 4}) {
    gradients_of(seed, 1);
    parts.push_back(s.gradients());
    s.update(true, 0);
    s.weights().rewind();
  }
  for (const std::uint64_t seed : {2, 3, 4}) gradients_of(seed, 1);
  for (std::size_t p = 0; p < parts[0].size(); ++p) {
    const bool exact = s.layout().entries[p].exact;
    EXPECT_EQ(parts[0][p].scalar_type(), exact ? at::kFloat : at::kBFloat16);
    const at::Tensor sum =
        parts[0][p].to(at::kFloat) + parts[1][p].to(at::kFloat) + parts[2][p].to(at::kFloat);
    EXPECT_EQ(s.gradients()[p].scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(s.gradients()[p], sum)) << p;
  }
  s.update(true, 0);
  s.weights().rewind();
  gradients_of(2, 0.3);
  for (std::size_t p = 0; p < parts[0].size(); ++p)
    EXPECT_TRUE(at::equal(s.gradients()[p], parts[0][p].to(at::kFloat).mul(0.3))) << p;
}

TEST_F(MixedStage, WidensGradientsForSums) {
  Stage s = stage(layers(), *optimizer_, *loss_);
  s.use({0, 0, 0});
  s.forward(0, {images()}, {}, false);
  s.backward(0, {.gradients = {at::ones({4, 37}, at::kBFloat16)}});
  const std::vector<at::Tensor> before = s.gradients();
  s.prepare_sums();
  for (std::size_t p = 0; p < before.size(); ++p) {
    EXPECT_EQ(s.gradients()[p].scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(s.gradients()[p], before[p].to(at::kFloat)));
  }
}

/// A step from a gradient of few bits is that from the same numbers in many.
TEST(MixedOptimizers, StepAsFromTheSameGradientInFloat32) {
  const FlatLayout layout = flat_layout({{"a", {401, 7}}, {"b", {13}}}, 4);
  for (const auto& [name, options] : kOptimizers) {
    const auto optimizer = make_optimizer(name, options);
    std::vector<at::Tensor> after;
    for (const bool narrow : {true, false}) {
      OptimizerState state = fresh_state(*optimizer, layout, at::kFloat, false, false);
      at::Tensor weights = random({layout.size}, 1).to(at::kFloat);
      for (std::uint64_t step = 0; step < 3; ++step) {
        std::vector<at::Tensor> gradients;
        for (const FlatLayout::Entry& entry : layout.entries) {
          const at::Tensor few = random(entry.shape, step).to(at::kBFloat16);
          gradients.push_back(narrow ? few : few.to(at::kFloat));
        }
        optimizer->step({.layout = layout,
                         .gradients = gradients,
                         .weights = weights,
                         .next = weights,
                         .state = state,
                         .lr = 0.1});
      }
      after.push_back(weights);
    }
    EXPECT_TRUE(at::equal(after[0], after[1])) << name << options;
  }
}

TEST_F(MixedStage, GivesLossesAndLastOutputsInTheWideFormat) {
  Stage s({.last = true,
           .layers = named({linear(3, 2)}),
           .options = at::kFloat,
           .narrow = at::kBFloat16,
           .optimizer = optimizer_.get(),
           .loss = loss_.get()},
          1);
  s.use({0, 0, 0});
  const at::Tensor x = x_.to(at::kBFloat16);
  EXPECT_EQ(s.forward(0, {x}, {.training = false}, false)[0].scalar_type(), at::kFloat);
  s.forward(0, {x}, {}, true);
  EXPECT_EQ(s.final_loss(0, y_).scalar_type(), at::kFloat);
  EXPECT_EQ(s.backward(0, {.own_loss = true, .input_gradient = true})[0].scalar_type(),
            at::kBFloat16);
}

/// What a layer computes in bfloat16 from numbers that are exact in it, beside float64.
void expect_near_float64(const LayerPtr& layer, const at::Tensor& input, double roundings) {
  layer->set_name("layer");
  const at::Tensor x = input.to(at::kBFloat16);
  std::vector<at::Tensor> narrow, wide;
  const auto values = random_parameters(*layer, 3);
  const auto specs = layer->parameters();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    narrow.push_back(values[i].to(specs[i].exact ? at::kFloat : at::kBFloat16));
    wide.push_back(narrow.back().to(at::kDouble));
  }
  const auto run = [&](at::Tensor in, std::vector<at::Tensor> parameters, at::ScalarType buffers) {
    in = in.detach().set_requires_grad(true);
    for (at::Tensor& parameter : parameters) parameter.set_requires_grad(true);
    auto state = fresh_buffers(*layer, buffers);
    const at::Tensor out = layer->forward(in, parameters, state, {});
    const at::Tensor g = random(out.sizes(), 9).to(at::kBFloat16).to(out.scalar_type());
    std::vector<at::Tensor> of{in};
    of.insert(of.end(), parameters.begin(), parameters.end());
    std::vector<at::Tensor> all{out.detach()};
    for (const at::Tensor& gradient : torch::autograd::grad({out}, of, {g}))
      all.push_back(gradient);
    return all;
  };
  const auto few = run(x, narrow, at::kFloat), exact = run(x.to(at::kDouble), wide, at::kDouble);
  EXPECT_EQ(few[0].scalar_type(), at::kBFloat16);
  for (std::size_t i = 0; i < few.size(); ++i) {
    const double norm = exact[i].norm().item<double>();
    const double off = (few[i].to(at::kDouble) - exact[i]).norm().item<double>();
    EXPECT_LE(off, roundings * tolerance::kUnitBfloat16 * norm)
        << "tensor " << i << ", " << off / (tolerance::kUnitBfloat16 * norm) << " roundings";
    if (few[i].scalar_type() == at::kBFloat16) {
      EXPECT_GT(off, 0) << "tensor " << i << ": nothing was rounded";
    }
  }
}

/// One product: its terms are exact in float32, their sum is rounded once.
TEST(MixedLayers, RoundProductsOnce) {
  expect_near_float64(linear(24, 17), random({9, 24}, 1), tolerance::kRoundedOnce);
  expect_near_float64(convolution(3, 5, {.padding = 1}), random({4, 3, 6, 6}, 1),
                      tolerance::kRoundedOnce);
}

/// Norms compute in float32 and round once.
TEST(MixedLayers, RoundNormsOnce) {
  expect_near_float64(batch_norm(5), random({4, 5, 6, 6}, 1), tolerance::kRoundedOnce);
  expect_near_float64(layer_norm(24), random({9, 24}, 1), tolerance::kRoundedOnce);
  expect_near_float64(rms_norm(24), random({9, 24}, 1), tolerance::kRoundedOnce);
}

/// Queries, keys and values, the scores' softmax, its product with the values, the projection: each
/// rounds, in the backward as well.
TEST(MixedLayers, RoundAttentionOncePerStep) {
  expect_near_float64(self_attention(16, 4), random({3, 7, 16}, 1), tolerance::kRoundedAttention);
  expect_near_float64(self_attention(16, 4, 0.2), random({3, 7, 16}, 1),
                      tolerance::kRoundedAttention);
}

/// A mask of 1/(1 − p) in 8 bits would make every output too small or too large by the same factor.
TEST(MixedLayers, DropWithoutABias) {
  const LayerPtr layer = dropout(0.1);
  layer->set_name("dropped");
  const at::Tensor x = at::full({1000}, 1, at::kBFloat16).view({10, 100});
  const at::Tensor kept = layer->forward(x, {}, {}, {});
  EXPECT_EQ(kept.scalar_type(), at::kBFloat16);
  const at::Tensor scaled = kept.masked_select(kept.ne(0)).to(at::kDouble);
  const double rounded = static_cast<float>(c10::BFloat16(static_cast<float>(1 / 0.9)));
  EXPECT_TRUE(scaled.eq(rounded).all().item<bool>());
  const at::Tensor three = layer->forward(at::full_like(x, 3), {}, {}, {});
  const double of_three = static_cast<float>(c10::BFloat16(static_cast<float>(3 / 0.9)));
  EXPECT_EQ(three.max().item<double>(), of_three);
}

TEST(Precision, IsSaidToBeSlowWhereTheProcessorHasNoInstructionsForIt) {
  const auto named = [](std::string_view name) {
    return *std::ranges::find(kPrecisions, name, &Precision::name);
  };
  EXPECT_NE(precision_remark(named("bfloat16"), true, false).find("longer than float32"),
            std::string::npos);
  EXPECT_EQ(precision_remark(named("bfloat16"), true, true), "");
  EXPECT_EQ(precision_remark(named("bfloat16"), false, false), "")
      << "no stage is on the processor";
  EXPECT_EQ(precision_remark(named("float32"), true, false), "");
}

}  // namespace
}  // namespace pipewright::test
