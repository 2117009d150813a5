// SPDX-License-Identifier: Apache-2.0
// What equal layers have in common, and how much their repetitions scatter.
#include "core/measuring/layer_times.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

LayerCost layer(double flops) {
  return {.flops = flops, .output_bytes = 8, .parameters = 4, .parameter_bytes = 16};
}

LayerTimes repeated(const std::vector<double>& seconds) {
  return {.forwards = seconds,
          .backwards = seconds,
          .inputs = seconds,
          .weights = seconds,
          .updates = seconds};
}

TEST(LayerTimes, OfEqualLayersAreOneMedian) {
  Profile profile{.timed = true,
                  .input_bytes = 8,
                  .layers = {layer(1), layer(1), layer(2), layer(1), layer(1)}};
  pool_equal_layers(profile, {repeated({1, 1, 1}), repeated({9, 9, 9}), repeated({5, 5, 5}),
                              repeated({1, 1, 3}), repeated({7, 7, 7})});
  EXPECT_EQ(profile.layers[0].forward, 1) << "the median of 1, 1, 1, 9, 9, 9, 1, 1, 3";
  EXPECT_EQ(profile.layers[1].forward, 1);
  EXPECT_EQ(profile.layers[1].backward_weight, 1);
  EXPECT_EQ(profile.layers[3].forward, 1);
  EXPECT_EQ(profile.layers[2].forward, 5) << "other operations";
  EXPECT_EQ(profile.layers[4].forward, 7) << "the last has the loss";
}

TEST(LayerTimes, ScatterWhereTheMiddleHalfIsWide) {
  Profile profile{.timed = true, .layers = {layer(1)}};
  EXPECT_EQ(pool_equal_layers(profile, {repeated({2, 2, 2, 2, 9})}), 0) << "one outlier";
  EXPECT_EQ(pool_equal_layers(profile, {repeated({1, 2, 4, 6, 9})}), 1) << "(6 - 2) / 4";
}

TEST(LayerTimes, OfALayerWithoutParametersHaveNoWeightHalf) {
  LayerCost cost;
  LayerTimes{.forwards = {1}, .backwards = {3}}.give(cost);
  EXPECT_EQ(cost.backward_input, 3);
  EXPECT_EQ(cost.backward_weight, 0);
  LayerTimes{.forwards = {1}, .backwards = {3}, .updates = {1}}.give(cost);
  EXPECT_EQ(cost.backward_input, 0) << "the first layer's input gets no gradient";
  EXPECT_EQ(cost.backward_weight, 3);
}

}  // namespace
}  // namespace pipewright
