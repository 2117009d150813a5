// SPDX-License-Identifier: Apache-2.0
// What image-to-image models are made of: instance norm, upsampling, and maps taken back from the
// way down.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

using Shape = std::vector<std::int64_t>;

Tensors apply_all(const Layer& layer, const Tensors& x) {
  return layer.forward_all(x, {}, {}, {});
}

TEST(InstanceNorm, NormalisesEachChannelOfEachSampleByItself) {
  const at::Tensor x = random({3, 2, 4, 5}, 1) * 3 + 2;
  const at::Tensor channels = x.view({1, 6, 4, 5});  // batch norm of one sample with 6 channels
  const at::Tensor expected = BatchNormReference(channels).normalized.view(x.sizes());
  EXPECT_LT(relative_error(apply(*instance_norm(), x, {}), expected), kFloat64Relative);
  EXPECT_LT(relative_error(apply(*instance_norm(), x, {}, {.training = false}), expected),
            kFloat64Relative);
}

TEST(InstanceNorm, HasTheGradientOfItsFormula) {
  const at::Tensor x = random({3, 2, 4, 5}, 1);
  const auto result = gradients(*instance_norm(), x, {}, {}, 2);
  const BatchNormReference reference(x.view({1, 6, 4, 5}));
  const at::Tensor g = grad_output(x, 2).view({1, 6, 4, 5});
  const at::Tensor expected = reference.grad_input(g, at::ones({6}, at::kDouble)).view(x.sizes());
  EXPECT_LT(relative_error(result.input, expected), kFloat64Relative);
}

TEST(InstanceNorm, RefusesImagesOfOnePixel) {
  try {
    const LayerPtr layer = instance_norm();
    layer->set_name("bottom.norm1");
    apply(*layer, random({4, 2, 1, 1}, 1), {});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'bottom.norm1'"), std::string::npos);
  }
}

TEST(LeakyRelu, KeepsAHundredthBelowZero) {
  const at::Tensor x = at::tensor({-3.0, -0.5, 0.0, 2.0});
  const at::Tensor expected = at::tensor({-0.03, -0.005, 0.0, 2.0});
  EXPECT_TRUE(at::equal(apply(*activation(Activation::LeakyRelu), x, {}), expected));
  EXPECT_TRUE(at::equal(activate_in_place(Activation::LeakyRelu, x.clone()), expected));
  EXPECT_EQ(x[0].item<double>(), -3);
}

TEST(UpsampleNearest, RepeatsEachPixel) {
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0, 4.0}).view({1, 1, 2, 2});
  const at::Tensor expected =
      at::tensor({1., 1., 2., 2., 1., 1., 2., 2., 3., 3., 4., 4., 3., 3., 4., 4.})
          .view({1, 1, 4, 4});
  EXPECT_TRUE(at::equal(apply(*upsample_nearest(2), x, {}), expected));
  EXPECT_EQ(apply(*upsample_nearest(3), random({2, 3, 5, 4}, 1), {}).sizes(),
            (Shape{2, 3, 15, 12}));
}

TEST(ConcatenateStashed, PutsTheStashedChannelsLast) {
  const at::Tensor x = random({2, 3, 4, 5}, 1), stashed = random({2, 2, 4, 5}, 2);
  const Tensors y = apply_all(*concatenate_stashed(), {x, stashed});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_TRUE(at::equal(y[0].narrow(1, 0, 3), x));
  EXPECT_TRUE(at::equal(y[0].narrow(1, 3, 2), stashed));
}

TEST(ConcatenateStashed, PadsTheSmallerMapAtItsBottomAndRight) {
  const at::Tensor x = random({2, 1, 3, 4}, 1), stashed = random({2, 1, 4, 6}, 2);
  const at::Tensor y = apply_all(*concatenate_stashed(), {x, stashed})[0];
  EXPECT_EQ(y.sizes(), (Shape{2, 2, 4, 6}));
  const at::Tensor padded = y.narrow(1, 0, 1);
  EXPECT_TRUE(at::equal(padded.slice(2, 0, 3).slice(3, 0, 4), x));
  EXPECT_EQ(padded.slice(2, 3).abs().max().item<double>(), 0);
  EXPECT_EQ(padded.slice(3, 4).abs().max().item<double>(), 0);
}

TEST(ConcatenateStashed, TakesWhatWasStashedLastAndLeavesTheRest) {
  const at::Tensor x = random({2, 1, 2, 2}, 1), y = random({2, 2, 2, 2}, 2);
  Tensors tensors = apply_all(*stash(), {x});
  tensors[0] = y;
  tensors = apply_all(*stash(), tensors);
  ASSERT_EQ(tensors.size(), 3U);
  tensors = apply_all(*concatenate_stashed(), tensors);
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_TRUE(at::equal(tensors[0], at::cat({y, y}, 1)));
  EXPECT_TRUE(tensors[1].is_same(x));
}

TEST(LayersOfMaps, HaveShapesOnTheMetaDevice) {
  const at::Tensor x = at::empty({2, 3, 4, 6}, at::TensorOptions(at::kMeta));
  for (const LayerPtr& layer :
       {instance_norm(), channel_dropout(0.5), activation(Activation::LeakyRelu)})
    EXPECT_EQ(layer->forward(x, {}, {}, {}).sizes(), x.sizes());
  EXPECT_EQ(upsample_nearest(2)->forward(x, {}, {}, {}).sizes(), (Shape{2, 3, 8, 12}));
  const at::Tensor larger = at::empty({2, 1, 5, 7}, x.options());
  EXPECT_EQ(apply_all(*concatenate_stashed(), {x, larger})[0].sizes(), (Shape{2, 4, 5, 7}));
}

}  // namespace
}  // namespace pipewright::test
