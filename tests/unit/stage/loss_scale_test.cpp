// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling: how the scale moves, how gradients change theirs, and what a stage does
// with gradients that are not finite.
#include "core/base/error.h"
#include "core/nn/precision.h"
#include "tests/unit/optim/optimizer_fixture.h"
#include "tests/unit/stage/stage_fixture.h"

namespace pipewright::test {
namespace {

TEST(LossScale, DoublesAfter2000UpdatesInARow) {
  LossScale scale;
  for (int update = 1; update < 2000; ++update) scale.updated();
  EXPECT_EQ(scale.scale, 65536);
  scale.updated();
  EXPECT_EQ(scale.scale, 131072);
  EXPECT_EQ(scale.since, 0);
}

TEST(LossScale, HalvesWithEachSkippedUpdateAndCountsAnew) {
  LossScale scale;
  for (int update = 0; update < 1999; ++update) scale.updated();
  scale.skip(0);
  scale.updated();
  EXPECT_EQ(scale.scale, 32768);
  EXPECT_EQ(scale.since, 1);
  EXPECT_EQ(scale.skipped, 1);
}

TEST(LossScale, StaysBetweenItsLimits) {
  LossScale low;
  for (int skipped = 0; skipped < 16; ++skipped) low.skip(3);
  EXPECT_EQ(low.scale, 1);
  try {
    low.skip(3);
    FAIL() << "a scale below 1";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::NotFinite);
    EXPECT_EQ(error.where(), "stage 3");
    EXPECT_NE(error.message().find("bfloat16"), std::string::npos);
  }
  LossScale high{.scale = LossScale::kLargest};
  for (int update = 0; update < 2000; ++update) high.updated();
  EXPECT_EQ(high.scale, LossScale::kLargest);
}

/// Ratios far outside of what float16 holds, to either side, and the order of images in memory.
TEST(LossScale, AdoptsGradientsOfAnyOtherScale) {
  const LossScale here{.scale = 1 << 10};
  const auto images =
      at::arange(24, at::kHalf).view({1, 2, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const std::int64_t sent : {std::int64_t{1}, std::int64_t{1} << 10, std::int64_t{1} << 34}) {
    const double ratio = 1024.0 / static_cast<double>(sent);
    Tensors gradients{images, at::full({1}, std::min(65504.0, 65504.0 / ratio), at::kHalf)};
    const at::Tensor untouched = images.clone();
    here.adopt(gradients, at::full({}, sent, at::kLong));
    EXPECT_TRUE(at::equal(images, untouched)) << "the sender's memory";
    EXPECT_EQ(gradients[0].scalar_type(), at::kHalf);
    EXPECT_TRUE(gradients[0].is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(at::equal(gradients[0], images.to(at::kFloat).mul(ratio).to(at::kHalf))) << sent;
    EXPECT_TRUE(std::isfinite(gradients[1].item<double>())) << sent;
  }
  Tensors large{at::full({2}, 1000, at::kHalf)};
  here.adopt(large, at::full({}, 1, at::kLong));
  EXPECT_TRUE(large[0].isinf().all().item<bool>()) << "what overflows must be seen";
}

/// An input gradient multiplied by `factor`; the output is the input.
class Amplifier final : public Layer {
 public:
  explicit Amplifier(double factor) : factor_(factor) {}
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return input + (input - input.detach()) * (factor_ - 1);
  }

 private:
  double factor_;
};

class ScaledStage : public StageTest {
 protected:
  static Stage stage(std::vector<LayerPtr> layers, const Optimizer& optimizer, const Loss& loss) {
    return Stage({.layers = named(std::move(layers)),
                  .options = at::kFloat,
                  .narrow = at::kHalf,
                  .optimizer = &optimizer,
                  .loss = &loss,
                  .predicts = true},
                 1);
  }

  /// A forward and a backward of which every output gradient is `gradient`.
  void pass(Stage& s, const WeightKey& key, double gradient, std::int64_t outputs = 5) {
    s.use(key);
    s.forward(0, {x_.to(at::kHalf)}, {}, true);
    s.backward(
        0, {.gradients = {at::full({4, outputs}, gradient, at::kHalf)}, .input_gradient = true});
  }
};

TEST_F(ScaledStage, DividesGradientsByTheScale) {
  Stage s = stage({linear(3, 5), layer_norm(5)}, *optimizer_, *loss_);
  const double scale = 65536;
  pass(s, {0, 0, 0}, 512);
  std::vector<at::Tensor> first;
  for (const at::Tensor& gradient : s.gradients())
    first.push_back(gradient.scalar_type() == at::kHalf ? gradient.to(at::kFloat) / scale
                                                        : gradient);
  EXPECT_EQ(s.gradients()[0].scalar_type(), at::kHalf) << "a first gradient stays narrow";
  EXPECT_EQ(s.gradients()[2].scalar_type(), at::kFloat) << "that of a norm is wide";
  pass(s, {0, 0, 0}, 512);
  for (std::size_t p = 0; p < first.size(); ++p) {
    EXPECT_EQ(s.gradients()[p].scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(s.gradients()[p], first[p] * 2)) << p;
  }
}

TEST_F(ScaledStage, UpdatesFromScaledGradientsAsFromTheirValues) {
  for (const auto& [name, options] : kOptimizers) {
    const auto optimizer = make_optimizer(name, options);
    Stage once = stage({linear(3, 5)}, *optimizer, *loss_);
    Stage summed = stage({linear(3, 5)}, *optimizer, *loss_);
    for (int version = 0; version < 3; ++version) {
      pass(once, {version, 0, 0}, 512);
      pass(summed, {version, 0, 0}, 512);
      summed.prepare_sums();
      for (const at::Tensor& gradient : summed.gradients())
        EXPECT_EQ(gradient.scalar_type(), at::kFloat);
      once.update(true, 0.1);
      summed.update(true, 0.1);
    }
    EXPECT_TRUE(at::equal(once.weights().latest(), summed.weights().latest())) << name << options;
  }
}

/// The versions of a skipped update, its predictions and their copies are there and have the
/// weights of the version before; the optimizer has not seen it.
TEST_F(ScaledStage, SkipsAnUpdateWhoseGradientsAreNotFinite) {
  for (const auto& [name, options] : kOptimizers)
    for (const bool in_place : {true, false}) {
      const std::string what = concat(name, options, in_place ? " in place" : "");
      const auto optimizer = make_optimizer(name, options);
      Stage s = stage({linear(3, 5)}, *optimizer, *loss_);
      pass(s, {0, 0, 0}, 512);
      s.update(true, 0.1);
      const at::Tensor weights = s.weights().latest().clone();
      std::vector<at::Tensor> slots;
      for (const at::Tensor& slot : s.optimizer_state().slots) slots.push_back(slot.clone());
      pass(s, {1, 0, 0}, std::numeric_limits<double>::infinity());
      s.update(in_place, 0.1, Stage::Ahead{{2, 1, 0}, rule_, 0.1});
      EXPECT_EQ(s.loss_scale()->scale, 32768) << what;
      EXPECT_EQ(s.updates(), 2) << what;
      EXPECT_EQ(s.optimizer_state().steps, 1) << what;
      for (std::size_t i = 0; i < slots.size(); ++i)
        EXPECT_TRUE(at::equal(s.optimizer_state().slots[i], slots[i])) << what;
      EXPECT_TRUE(at::equal(s.weights().latest(), weights)) << what;
      EXPECT_EQ(at::equal(s.weights().version({2, 1, 0}), weights), name == "soap")
          << what << "; SOAP's first update only begins its matrices, so that none is predicted";
      for (const int ahead : {0, 1}) {
        s.weights().install({2, ahead, 0});
        const FlatLayout::Entry& entry = s.layout().entries[0];
        const at::Tensor wide = entry.view(s.weights().version({2, ahead, 0}));
        EXPECT_TRUE(at::equal(s.weights().leaves()[0].detach(), wide.to(at::kHalf))) << what;
      }
      for (const at::Tensor& gradient : s.gradients()) EXPECT_FALSE(gradient.defined()) << what;
    }
}

/// Otherwise the stage before would get infinite gradients for ever, whatever its own scale.
TEST_F(ScaledStage, SkipsAnUpdateWhoseInputGradientsAreNotFinite) {
  Stage s = stage({std::make_shared<Amplifier>(1000)}, *optimizer_, *loss_);
  pass(s, {0, 0, 0}, 512, 3);
  s.update(true, 0.1);
  EXPECT_EQ(s.loss_scale()->skipped, 1);
  pass(s, {1, 0, 0}, 1, 3);
  s.update(true, 0.1);
  EXPECT_EQ(s.loss_scale()->skipped, 1);
}

/// The weights' part of a backward may run after an update that has changed the scale.
TEST_F(ScaledStage, DividesByTheScaleThatAGradientWasComputedAt) {
  Stage s = stage({linear(3, 5)}, *optimizer_, *loss_);
  s.use({0, 0, 0});
  s.forward(0, {x_.to(at::kHalf)}, {}, true);
  s.backward(
      0, {.gradients = {at::full({4, 5}, 512, at::kHalf)}, .input_gradient = true, .half_of = 0});
  s.loss_scale()->skip(0);
  s.backward_weight(0, 0, 1);
  const at::Tensor later = s.gradients()[0];
  s.prepare_sums();
  Stage same = stage({linear(3, 5)}, *optimizer_, *loss_);
  pass(same, {0, 0, 0}, 512);
  same.prepare_sums();
  EXPECT_TRUE(at::equal(s.gradients()[0], same.gradients()[0]));
}

}  // namespace
}  // namespace pipewright::test
