// SPDX-License-Identifier: Apache-2.0
// The forms for GPUs, computed on the CPU and compared with LibTorch's operators there.
#include "core/nn/layers/gpu_forms.h"

#include <gtest/gtest.h>

#include "core/system/foreign_error.h"
#include "core/tensors/torch.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

TEST(GpuForms, AverageAsLibTorchForwardsAndBackwards) {
  at::manual_seed(1);
  for (const auto& [from, to] : {std::pair{1, 7}, {7, 7}, {8, 3}, {5, 2}, {2, 5}, {13, 6}}) {
    at::Tensor x = at::randn({2, 3, from, from + 1}, at::kDouble).requires_grad_(true);
    at::Tensor same = x.detach().clone().requires_grad_(true);
    const at::Tensor ours = average_by_products(x, to, to), theirs = average_to(same, to, to);
    // Means of at most 14 · 13 values of size 5 in two ways.
    EXPECT_TRUE(at::allclose(ours, theirs, 0, tolerance::rounded64(14 * 13 * 5))) << from;
    const at::Tensor gradient = at::randn(ours.sizes(), at::kDouble);
    ours.backward(gradient);
    theirs.backward(gradient);
    EXPECT_TRUE(at::allclose(x.grad(), same.grad(), 0, tolerance::rounded64(14 * 13 * 5))) << from;
  }
}

TEST(GpuForms, AverageOfOneImageAndOfNarrowFormats) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({3, 4, 6});
  EXPECT_TRUE(at::allclose(average_by_products(x, 2, 3), at::adaptive_avg_pool2d(x, {2, 3}), 0,
                           tolerance::rounded32(4 * 5)));
  const at::Tensor narrow = x.to(at::kBFloat16);
  const at::Tensor mean = average_by_products(narrow, 2, 3);
  EXPECT_EQ(mean.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(mean.equal(average_by_products(narrow.to(at::kFloat), 2, 3).to(at::kBFloat16)));
}

TEST(GpuForms, SaysWhatAnOperatorWithoutAnOrderDoes) {
  const std::runtime_error said(
      "some_backward_cuda does not have a deterministic implementation, but you set …");
  EXPECT_EQ(first_line(said).find("some_backward_cuda adds in another order in every run"), 0U);
  EXPECT_NE(first_line(said).find("pipeline.device"), std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
