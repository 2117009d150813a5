// SPDX-License-Identifier: Apache-2.0
// Trainings in float16 whose gradients overflow: which stages skip their updates, that every
// execution agrees, and that one stage trains as a plain loop with PyTorch's rule does.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

constexpr int kOverflow = 2;     // the mini-batch whose gradients overflow
constexpr double kFactor = 5e4;  // of those gradients

/// Multiplies the gradients that come back through a layer in mini-batch kOverflow; outputs stay as
/// they are.
class Amplified final : public Layer {
 public:
  explicit Amplified(LayerPtr inner) : inner_(std::move(inner)) { Layer::set_name(inner_->name()); }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor output = inner_->forward(input, parameters, buffers, pass);
    return pass.minibatch == kOverflow ? amplified(output) : output;
  }
  static at::Tensor amplified(const at::Tensor& output) {
    return output + (output - output.detach()) * kFactor;
  }

 private:
  LayerPtr inner_;
};

void amplify(Laboratory& laboratory, std::size_t layer) {
  LayerPtr& at = laboratory.experiment.layers.at(layer);
  at = std::make_shared<Amplified>(at);
}

std::vector<std::int64_t> skipped(const Stages& stages) {
  std::vector<std::int64_t> counts;
  for (const auto& stage : stages) counts.push_back(stage->loss_scale()->skipped);
  return counts;
}

/// A stage that receives infinite gradients sends some, so all stages before it skip as well.
TEST(LossScaling, SkipsTheUpdatesOfTheStageThatOverflowsAndOfThoseBefore) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain", "pipeoptim", "zb_h1"}) {
    Laboratory laboratory(concat("{scheme: {name: ", scheme,
                                 "}, train.precision: float16, pipeline.microbatches: 2}"));
    amplify(laboratory, 2);
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    EXPECT_EQ(skipped(stages), (std::vector<std::int64_t>{1, 1, 1, 0})) << scheme;
    for (const auto& stage : stages) {
      EXPECT_EQ(stage->loss_scale()->scale, stage->index() == 3 ? 65536 : 32768) << scheme;
      EXPECT_EQ(stage->updates(), 6) << scheme;
      EXPECT_TRUE(stage->weights().latest().isfinite().all().item<bool>()) << scheme;
    }
  }
}

/// The update that would have applied it changes nothing, as the update of delayed SGD does to
/// which that gradient belongs: both trainings have the same weights two updates apart.
TEST(LossScaling, AppliesNoDelayedGradientThatHasOverflowed) {
  const auto losses = [](const std::string& more, std::int64_t skipped_updates) {
    Laboratory laboratory(
        concat("{train.precision: float16, pipeline.stages: 1, dataset.train: 80, ", more, "}"));
    amplify(laboratory, 2);
    const Stages stages = laboratory.plan().stages();
    const RunResult result = train(laboratory.plan(), stages, Execution::Serial);
    EXPECT_EQ(stages[0]->loss_scale()->skipped, skipped_updates);
    EXPECT_EQ(stages[0]->updates(), 10);
    return flat_losses(result);
  };
  EXPECT_EQ(losses("scheme: {name: gpipe}, perturb.gradient_delay: 2", 1),
            losses("scheme: {name: delayed_sgd, delay: 2}", 1));
}

TEST(LossScaling, GivesTheSameBitsInEveryExecutionWithDelayedGradients) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain", "pipeoptim", "zb_h1"}) {
    Laboratory laboratory(concat("{scheme: {name: ", scheme,
                                 "}, train.precision: float16, pipeline.microbatches: 2, "
                                 "perturb: {gradient_delay: 2, weight_noise: 0.01}}"));
    amplify(laboratory, 2);
    expect_same_bits(laboratory, scheme);
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    EXPECT_EQ(skipped(stages), (std::vector<std::int64_t>{1, 1, 1, 0})) << scheme;
    for (const auto& stage : stages) EXPECT_EQ(stage->updates(), 6) << scheme;
  }
}

TEST(LossScaling, GivesTheSameBitsInEveryExecutionWithUpdatesSkipped) {
  for (const SchemeCase& scheme : every_scheme()) {
    const bool one_stage = scheme.name == "data_parallel";
    Laboratory laboratory(concat("{scheme: ", scheme_text(scheme),
                                 ", train.precision: float16, pipeline.microbatches: 4, "
                                 "pipeline.stages: ",
                                 one_stage ? 1 : 4, ", pipeline.replicas: ", one_stage ? 2 : 1,
                                 "}"));
    amplify(laboratory, 1);
    expect_same_bits(laboratory, scheme.name + scheme.options);
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    const auto counts = skipped(stages);
    EXPECT_GT(std::ranges::max(counts), 0) << scheme.name << ": nothing overflowed";
  }
}

TEST(LossScaling, KeepsReplicasEqual) {
  Laboratory laboratory(
      "{scheme: {name: one_f_one_b}, train.precision: float16, pipeline.replicas: 2, "
      "pipeline.stages: 2, pipeline.microbatches: 2}");
  amplify(laboratory, 1);
  const Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, Execution::Serial);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_TRUE(
        at::equal(stages[stage]->weights().latest(), stages[stage + 2]->weights().latest()));
    EXPECT_EQ(stages[stage]->loss_scale()->scale, stages[stage + 2]->loss_scale()->scale);
  }
  EXPECT_EQ(skipped(stages)[0], 1);
}

/// Multiplies the gradient of the layer's input in mini-batch kOverflow, in replica 0 alone: its
/// weights' gradients stay as they are.
class AmplifiedInput final : public Layer {
 public:
  explicit AmplifiedInput(LayerPtr inner) : inner_(std::move(inner)) {
    Layer::set_name(inner_->name());
  }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const bool here = pass.minibatch == kOverflow && pass.first_sample == 0;
    return inner_->forward(here ? Amplified::amplified(input) : input, parameters, buffers, pass);
  }

 private:
  LayerPtr inner_;
};

/// The second stage of replica 0 sends an infinite gradient, and has finite ones itself.
TEST(LossScaling, KeepsReplicasEqualWhereOneOfThemSendsWhatOverflows) {
  for (const char* scheme : {"gpipe", "one_f_one_b", "zb_h1"}) {
    Laboratory laboratory(concat("{scheme: {name: ", scheme,
                                 "}, train.precision: float16, pipeline.replicas: 2, "
                                 "pipeline.stages: 2, pipeline.microbatches: 2}"));
    LayerPtr& layer = laboratory.experiment.layers.at(2);
    layer = std::make_shared<AmplifiedInput>(layer);
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    for (std::size_t stage = 0; stage < 2; ++stage)
      EXPECT_TRUE(
          at::equal(stages[stage]->weights().latest(), stages[stage + 2]->weights().latest()))
          << scheme << ", stage " << stage;
    EXPECT_EQ(skipped(stages), (std::vector<std::int64_t>{1, 1, 1, 1})) << scheme;
    expect_same_bits(laboratory, scheme);
  }
}

TEST(LossScaling, GoesOnAfterAnOverflowWithEveryKindOfCodec) {
  for (const char* codec : {"fp16", "bf16", "fp8", "mx", "uniform", "sort_quantization",
                            "top_k, fraction: 0.5", "sign", "k_means", "power_iteration"}) {
    Laboratory laboratory(concat(
        "{scheme: {name: pipedream}, train.precision: float16, pipeline.compression: {name: ",
        codec, "}}"));
    amplify(laboratory, 2);
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    EXPECT_EQ(skipped(stages), (std::vector<std::int64_t>{1, 1, 1, 0})) << codec;
  }
}

/// Powers of two change no bit of a gradient, so nor do the errors that are added to it.
TEST(LossScaling, AddsErrorsOfCodecsAtTheScaleOfTheGradient) {
  for (const char* codec : {"top_k, fraction: 0.3, feedback: tensor", "sign, feedback: tensor"})
    for (const int microbatches : {1, 2}) {
      Laboratory laboratory(concat(
          "{scheme: {name: gpipe}, train.precision: float16, pipeline.microbatches: ", microbatches,
          ", pipeline.compression: {backward: {name: ", codec, "}}}"));
      const Stages kept = laboratory.plan().stages(), doubled = laboratory.plan().stages();
      for (const auto& stage : doubled) stage->loss_scale()->since = LossScale::kDoubledAfter - 3;
      train(laboratory.plan(), kept, Execution::Serial);
      train(laboratory.plan(), doubled, Execution::Serial);
      for (const auto& stage : kept) EXPECT_EQ(stage->loss_scale()->scale, 65536);
      for (const auto& stage : doubled) EXPECT_EQ(stage->loss_scale()->scale, 131072);
      EXPECT_EQ(difference(kept, doubled), "") << codec << ", " << microbatches;
    }
}

/// The loop that a user of PyTorch would write, in float16 by hand.
struct PlainLoop {
  std::vector<at::Tensor> weights, momenta;  ///< [W₁, b₁, …] in float32
  double scale = 65536;
  int skipped = 0;

  void step(const at::Tensor& x, const at::Tensor& y, bool overflow) {
    std::vector<at::Tensor> narrow;
    for (const at::Tensor& weight : weights)
      narrow.push_back(weight.to(at::kHalf).set_requires_grad(true));
    at::Tensor h = x;
    for (std::size_t i = 0; i < narrow.size(); i += 2) {
      h = at::linear(h, narrow[i], narrow[i + 1]);
      if (i + 2 < narrow.size()) h = h.relu();
      if (overflow && i == 2) h = Amplified::amplified(h);
    }
    const at::Tensor loss = at::cross_entropy_loss(h.to(at::kFloat), y);
    auto gradients = torch::autograd::grad({loss}, narrow, {at::full_like(loss, scale)});
    bool finite = true;
    for (at::Tensor& gradient : gradients) {
      gradient = gradient.to(at::kFloat) / scale;
      finite = finite && gradient.isfinite().all().item<bool>();
    }
    if (!finite) {
      scale /= 2;
      ++skipped;
      return;
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      momenta[i] = momenta[i] * 0.9F + gradients[i];
      weights[i] = weights[i] - momenta[i] * 0.05F;
    }
  }
};

TEST(LossScaling, TrainsOneStageAsAPlainLoopDoes) {
  Laboratory laboratory(
      "{scheme: {name: gpipe}, train.precision: float16, pipeline.stages: 1, dataset.train: 48}");
  amplify(laboratory, 1);
  const Plan& plan = laboratory.plan();
  const Stages stages = plan.stages();
  PlainLoop loop;
  for (const auto& [name, parameter] : stages[0]->named_parameters()) {
    loop.weights.push_back(parameter.clone());
    loop.momenta.push_back(at::zeros_like(parameter));
  }
  Loader loader = plan.training_loader(0, 1);
  for (int m = 0; m < plan.minibatches; ++m) {
    const Share all{.samples = 8, .replica_samples = 8, .all_samples = 8};
    loop.step(loader.inputs(m, all, at::kCPU)[0], loader.targets(m, all, at::kCPU), m == kOverflow);
  }
  train(plan, stages, Execution::Serial);
  EXPECT_EQ(loop.skipped, 1);
  EXPECT_EQ(stages[0]->loss_scale()->skipped, 1);
  const auto trained = stages[0]->named_parameters();
  for (std::size_t i = 0; i < trained.size(); ++i)
    EXPECT_TRUE(at::equal(trained[i].second, loop.weights[i])) << trained[i].first;
}

}  // namespace
}  // namespace pipewright::test
