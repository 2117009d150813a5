// SPDX-License-Identifier: Apache-2.0
// The small convolutional network: small enough, deep enough, and fine with small images.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

/// A k×k convolution without bias, and batch norm.
std::int64_t unit(std::int64_t in, std::int64_t out) {
  return 9 * in * out + 2 * out;
}

TEST(Cnn, HasEightLayersOfUnequalSize) {
  const auto model = make_model("cnn");
  EXPECT_EQ(parameter_counts(*model),
            (std::vector<std::int64_t>{unit(3, 16), unit(16, 32), unit(32, 32), unit(32, 64),
                                       unit(64, 64), unit(64, 96), unit(96, 96), 96 * 10 + 10}));
  EXPECT_EQ(total_parameters(*model), 209'562);
  EXPECT_EQ(layer_names(*model), (std::vector<std::string>{"conv1", "conv2", "conv3", "conv4",
                                                           "conv5", "conv6", "conv7", "fc"}));
}

TEST(Cnn, PoolsOnlyMapsLargerThanFour) {
  EXPECT_EQ(boundary_shapes(*make_model("cnn")), (std::vector<Shape>{{16, 32, 32},
                                                                     {32, 16, 16},
                                                                     {32, 16, 16},
                                                                     {64, 8, 8},
                                                                     {64, 8, 8},
                                                                     {96, 4, 4},
                                                                     {96, 4, 4},
                                                                     {10}}));
  EXPECT_EQ(boundary_shapes(*make_model("cnn", "{channels: 1, size: 8}")),
            (std::vector<Shape>{{16, 8, 8},
                                {32, 4, 4},
                                {32, 4, 4},
                                {64, 4, 4},
                                {64, 4, 4},
                                {96, 4, 4},
                                {96, 4, 4},
                                {10}}));
}

TEST(Cnn, DropsAfterEverySecondConvolution) {
  const auto training = [](const std::string& options, std::size_t layer, const Pass& pass) {
    const auto model = make_model("cnn", options);
    const LayerPtr unit_layer = model->layers()[layer];
    const std::int64_t in = unit_layer->parameters()[0].shape[1];
    return apply(*unit_layer, random({4, in, 8, 8}, 1), random_parameters(*unit_layer, 2), pass);
  };
  const Pass first{.minibatch = 0}, second{.minibatch = 1};
  for (std::size_t layer = 0; layer < 7; ++layer) {
    const bool drops = !at::equal(training("{}", layer, first), training("{}", layer, second));
    EXPECT_EQ(drops, layer % 2 == 1) << "layer " << layer;
    EXPECT_TRUE(
        at::equal(training("{dropout: 0}", layer, first), training("{dropout: 0}", layer, second)));
  }
}

TEST(Cnn, HasALightHeadAfterEveryLayer) {
  const auto model = make_model("cnn", "{classes: 7}");
  EXPECT_EQ(parameter_count(*model->head(0)), (16 + 1) * 7);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(head_shape(*model, i), Shape{7}) << "layer " << i;
}

TEST(Cnn, RecordsBadOptions) {
  EXPECT_NE(model_problems("cnn", "{dropout: 1}"), "");
  EXPECT_NE(model_problems("cnn", "{size: 3}"), "");
  EXPECT_NE(model_problems("cnn", "{classes: 0}"), "");
  EXPECT_NE(model_problems("cnn", "{width: 0}"), "");
}

}  // namespace
}  // namespace pipewright::test
