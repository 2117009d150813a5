// SPDX-License-Identifier: Apache-2.0
#include "core/cost/roofline.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

/// 100 operations and 10 bytes a second, half of the operations reached.
constexpr DeviceRates kRates{.flops = 100, .bandwidth = 10, .efficiency = 0.5};

TEST(Roofline, ALayerOfManyOperationsTakesWhatTheyTake) {
  Profile counted{.input_bytes = 4, .layers = {{.flops = 500, .output_bytes = 6}}};
  EXPECT_EQ(with_modelled_times(counted, kRates).layers[0].forward, 10);
}

TEST(Roofline, ALayerThatMovesMuchTakesWhatItsBytesTake) {
  Profile counted{.input_bytes = 40,
                  .layers = {{.flops = 5, .output_bytes = 60, .activation_bytes = 80},
                             {.output_bytes = 10, .parameters = 5, .parameter_bytes = 20}}};
  const Profile timed = with_modelled_times(counted, kRates);
  EXPECT_EQ(timed.layers[0].forward, 12);
  EXPECT_EQ(timed.layers[1].forward, 9) << "its input is the first one's output";
  EXPECT_EQ(timed.layers[1].update, 10);
}

TEST(Roofline, EitherHalfOfABackwardIsAForwardAgain) {
  Profile counted{.layers = {{.flops = 50, .parameters = 1}, {.flops = 50}}};
  const Profile timed = with_modelled_times(counted, kRates);
  EXPECT_TRUE(timed.timed);
  EXPECT_EQ(timed.layers[0].backward, 2);
  EXPECT_EQ(timed.layers[0].backward_weight, 1);
  EXPECT_EQ(timed.layers[1].backward, 1) << "without parameters there is no weight's half";
  EXPECT_EQ(timed.layers[1].backward_weight, 0);
}

TEST(Roofline, MixedPrecisionComputesAtItsOwnRateAndReadsTheCopies) {
  Profile counted{
      .layers = {{.flops = 5000, .parameters = 10, .parameter_bytes = 40, .copy_bytes = 20},
                 {.flops = 5, .parameters = 10, .parameter_bytes = 40, .copy_bytes = 20},
                 {.flops = 5, .parameters = 10, .parameter_bytes = 40}}};
  DeviceRates rates = kRates;
  rates.bfloat16_flops = 400;
  EXPECT_EQ(with_modelled_times(counted, rates).layers[0].forward, 100) << "in float32";
  counted.precision = "bfloat16";
  const Profile timed = with_modelled_times(counted, rates);
  EXPECT_EQ(timed.layers[0].forward, 25);
  EXPECT_EQ(timed.layers[1].forward, 2);
  EXPECT_EQ(timed.layers[2].forward, 4) << "a norm, whose parameters have no copies";
  EXPECT_EQ(timed.layers[1].update, 22);
  EXPECT_EQ(with_modelled_times(counted, kRates).layers[0].forward, 100) << "no rate of its own";
}

}  // namespace
}  // namespace pipewright
