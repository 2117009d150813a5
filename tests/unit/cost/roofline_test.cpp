// SPDX-License-Identifier: Apache-2.0
#include "core/cost/roofline.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

/// 100 operations and 10 bytes a second, half of the operations reached.
constexpr DeviceRates kRates{.flops = 100, .bandwidth = 10, .efficiency = 0.5};

/// With an optimizer that moves as much of each layer.
Profile timed_on(const DeviceRates& rates, const Profile& counted, const WeightMoves& moves = {}) {
  return Roofline(rates, counted.precision)
      .timed(counted, std::vector(counted.layers.size(), moves));
}

TEST(Roofline, ALayerOfManyOperationsTakesWhatTheyTake) {
  Profile counted{.input_bytes = 4, .layers = {{.flops = 500, .output_bytes = 6}}};
  EXPECT_EQ(timed_on(kRates, counted).layers[0].forward, 10);
}

TEST(Roofline, ALayerThatMovesMuchTakesWhatItsBytesTake) {
  Profile counted{.input_bytes = 40,
                  .layers = {{.flops = 5, .output_bytes = 60, .activation_bytes = 80},
                             {.output_bytes = 10, .parameters = 5, .parameter_bytes = 20}}};
  const Profile timed = timed_on(kRates, counted);
  EXPECT_EQ(timed.layers[0].forward, 12);
  EXPECT_EQ(timed.layers[1].forward, 9) << "its input is the first one's output";
  EXPECT_EQ(timed.layers[1].update, 10);
}

TEST(Roofline, EitherHalfOfABackwardIsAForwardAgain) {
  Profile counted{.layers = {{}, {.flops = 50, .parameters = 1}, {.flops = 50}}};
  const Profile timed = timed_on(kRates, counted);
  EXPECT_TRUE(timed.timed);
  EXPECT_EQ(timed.layers[1].backward, 2);
  EXPECT_EQ(timed.layers[1].backward_weight, 1);
  EXPECT_EQ(timed.layers[2].backward, 1) << "without parameters there is no weight's half";
  EXPECT_EQ(timed.layers[2].backward_weight, 0);
}

TEST(Roofline, NobodyNeedsTheGradientOfTheData) {
  Profile counted{.layers = {{.flops = 50, .parameters = 1}}};
  const Profile timed = timed_on(kRates, counted);
  EXPECT_EQ(timed.layers[0].forward, 1);
  EXPECT_EQ(timed.layers[0].backward_input, 0);
  EXPECT_EQ(timed.layers[0].backward_weight, 1);
  EXPECT_EQ(timed.layers[0].backward, 1);
}

TEST(FormatRates, AreTheirOwnOrThoseOfAnotherFormatThatIsNamed) {
  constexpr double kTera = 1e12;
  DeviceRates rates{.flops = 15.5 * kTera, .efficiency = 0.5};
  EXPECT_EQ(rate_text(rates, "float32"), "float32 at 15.5 × 0.5 TFLOPS");
  EXPECT_EQ(rate_text(rates, "float16"),
            "float16 at 15.5 × 0.5 TFLOPS (no rate for float16: float32's is taken)");
  EXPECT_EQ(format_rate(rates, "float64").flops, 15.5 * kTera);
  rates.bfloat16_flops = 100 * kTera;
  EXPECT_EQ(rate_text(rates, "float16"),
            "float16 at 100 × 0.5 TFLOPS (no rate for float16: bfloat16's is taken)");
  rates.float16_flops = 125 * kTera;
  EXPECT_EQ(rate_text(rates, "float16"), "float16 at 125 × 0.5 TFLOPS");
  rates.bfloat16_flops = 0;
  EXPECT_EQ(format_rate(rates, "bfloat16").taken_for, "float32") << "not float16's";
}

TEST(FormatRates, AreNoneOfAFormatThatTheDeviceLacks) {
  DeviceRates rates{.flops = 100, .bfloat16_flops = DeviceRates::kLacksFormat};
  EXPECT_EQ(format_rate(rates, "bfloat16").flops, 0);
  EXPECT_EQ(format_rate(rates, "float16").flops, 100);
  rates = {.flops = 100, .float16_flops = DeviceRates::kLacksFormat, .bfloat16_flops = 400};
  EXPECT_EQ(format_rate(rates, "float16").flops, 0);
}

TEST(Roofline, MixedPrecisionComputesAtItsOwnRateAndReadsTheCopies) {
  Profile counted{
      .layers = {{.flops = 5000, .parameters = 10, .parameter_bytes = 40, .copy_bytes = 20},
                 {.flops = 5, .parameters = 10, .parameter_bytes = 40, .copy_bytes = 20},
                 {.flops = 5, .parameters = 10, .parameter_bytes = 40}}};
  DeviceRates rates = kRates;
  rates.bfloat16_flops = 400;
  EXPECT_EQ(timed_on(rates, counted).layers[0].forward, 100) << "in float32";
  counted.precision = "bfloat16";
  const Profile timed = timed_on(rates, counted);
  EXPECT_EQ(timed.layers[0].forward, 25);
  EXPECT_EQ(timed.layers[1].forward, 2);
  EXPECT_EQ(timed.layers[2].forward, 4) << "a norm, whose parameters have no copies";
  EXPECT_EQ(timed.layers[1].update, 22);
  EXPECT_EQ(timed_on(kRates, counted).layers[0].forward, 100) << "no rate of its own";
}

TEST(Roofline, PredictionsTakeTheBytesTheyMove) {
  Profile counted{.layers = {{.parameters = 5, .parameter_bytes = 20, .copy_bytes = 10}, {}}};
  const Profile timed = timed_on(kRates, counted, {7, 4, 1});
  EXPECT_EQ(timed.layers[0].update, (7 * 20 + 10) / 10.0);
  EXPECT_EQ(timed.layers[0].prediction, (4 * 20 + 10) / 10.0);
  EXPECT_EQ(timed.layers[0].fused_prediction, (20 + 10) / 10.0) << "the rest is in the cache";
  EXPECT_EQ(timed.layers[0].new_version, 0) << "weights are read once and written once either way";
  EXPECT_EQ(timed.layers[1].prediction, 0);
}

TEST(Roofline, AnUpdateTakesWhatItsMatrixProductsTakeInTheFormatOfTheWeights) {
  Profile counted{.precision = "bfloat16",
                  .layers = {{.update_flops = 5000, .parameters = 5, .parameter_bytes = 20}}};
  DeviceRates rates = kRates;
  rates.bfloat16_flops = 400;
  EXPECT_EQ(timed_on(rates, counted).layers[0].update, 100) << "float32 beside bfloat16";
  rates.float64_flops = 50;
  counted.precision = "float64";
  EXPECT_EQ(timed_on(rates, counted).layers[0].update, 200);
  counted.layers[0].update_flops = 5;
  EXPECT_EQ(timed_on(rates, counted).layers[0].update, 10) << "moving 5 · 20 bytes takes longer";
}

TEST(Roofline, AHostStartsOperatorsWhileTheDeviceComputesThoseBefore) {
  Profile counted{.layers = {{.flops = 500,
                              .kernels = 4,
                              .update_kernels = 9,
                              .parameters = 5,
                              .parameter_bytes = 20}}};
  DeviceRates rates = kRates;
  rates.launch = 2;
  const LayerCost hidden = timed_on(rates, counted).layers[0];
  EXPECT_EQ(hidden.forward, 10) << "four launches take 8 s";
  EXPECT_EQ(hidden.update, 18) << "moving 100 bytes would take 10 s";
  EXPECT_EQ(hidden.fused_prediction, hidden.prediction) << "nothing is fused";
  rates.launch = 3;
  const LayerCost bound = timed_on(rates, counted).layers[0];
  EXPECT_EQ(bound.forward, 12);
  EXPECT_EQ(bound.backward_weight, 12);
}

}  // namespace
}  // namespace pipewright
