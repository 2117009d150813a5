// SPDX-License-Identifier: Apache-2.0
#include "core/nn/meta/meta_kernels.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// What an operator makes of tensors on a device.
using Call = std::function<at::Tensor(at::Device device)>;

at::Tensor ones(at::IntArrayRef sizes, at::Device device, at::ScalarType type = at::kFloat) {
  return at::ones(sizes, at::TensorOptions(type).device(device));
}

struct NamedCall {
  std::string name;
  Call call;
};

const std::vector<NamedCall>& calls() {
  static const std::vector<NamedCall> all{
      {"relu",
       [](auto d) {
         return at::relu(ones({2, 3}, d));
       }},
      {"relu_",
       [](auto d) {
         return ones({2, 3}, d).relu_();
       }},
      {"hardswish",
       [](auto d) {
         return at::hardswish(ones({2, 3}, d));
       }},
      {"hardtanh",
       [](auto d) {
         return at::hardtanh(ones({2, 3}, d));
       }},
      {"flip",
       [](auto d) {
         return at::flip(ones({2, 3}, d), {1});
       }},
      {"roll",
       [](auto d) {
         return at::roll(ones({2, 3}, d), {1}, {0});
       }},
      {"prelu",
       [](auto d) {
         return at::prelu(ones({2, 3, 4}, d), ones({3}, d));
       }},
      {"logsumexp",
       [](auto d) {
         return at::logsumexp(ones({2, 3}, d), {1});
       }},
      {"max",
       [](auto d) {
         return at::max(ones({2, 3}, d));
       }},
      {"min",
       [](auto d) {
         return at::min(ones({2, 3}, d));
       }},
      {"std",
       [](auto d) {
         return at::std(ones({2, 3}, d), at::IntArrayRef{1}, true, true);
       }},
      {"var",
       [](auto d) {
         return at::var(ones({2, 3}, d), true);
       }},
      {"rsub",
       [](auto d) {
         return at::rsub(ones({3}, d), ones({2, 1}, d));
       }},
      {"where",
       [](auto d) {
         return at::where(ones({2, 1}, d, at::kBool), ones({3}, d), ones({1}, d));
       }},
      {"logical_not",
       [](auto d) {
         return at::logical_not(ones({2, 3}, d));
       }},
      {"logical_and",
       [](auto d) {
         return at::logical_and(ones({2, 1}, d), ones({3}, d, at::kBool));
       }},
      {"logical_or",
       [](auto d) {
         return at::logical_or(ones({2, 1}, d), ones({3}, d));
       }},
      {"logical_xor",
       [](auto d) {
         return at::logical_xor(ones({2, 3}, d), ones({3}, d));
       }},
      {"dot", [](auto d) { return at::dot(ones({3}, d), ones({3}, d)); }},
      {"index_select",
       [](auto d) {
         return at::index_select(ones({2, 3}, d), -1, ones({5}, d, at::kLong));
       }},
      {"embedding",
       [](auto d) {
         return at::embedding(ones({9, 4}, d), ones({2, 3}, d, at::kLong));
       }},
      {"average",
       [](auto d) {
         return at::adaptive_avg_pool2d(ones({2, 3, 8, 8}, d), {3, 5});
       }},
      {"average of lines",
       [](auto d) {
         return at::adaptive_avg_pool1d(ones({2, 3, 8}, d), {5});
       }},
      {"layer_norm",
       [](auto d) {
         return at::layer_norm(ones({2, 3}, d), {3}, ones({3}, d));
       }},
      {"group_norm",
       [](auto d) {
         return at::group_norm(ones({2, 4, 5}, d), 2);
       }},
      {"convolution",
       [](auto d) {
         return at::conv2d(ones({2, 4, 9, 8}, d), ones({6, 2, 3, 2}, d), {}, 2, 1, 2, 2);
       }},
      {"convolution of a line",
       [](auto d) {
         return at::conv1d(ones({2, 4, 9}, d), ones({6, 4, 3}, d), {}, 1, "same");
       }},
      {"transposed convolution",
       [](auto d) {
         return at::conv_transpose2d(ones({2, 4, 5, 5}, d), ones({4, 3, 3, 3}, d), {}, 2, 1, 1, 2);
       }},
      {"attention",
       [](auto d) {
         const at::Tensor x = ones({2, 2, 5, 4}, d);
         return at::scaled_dot_product_attention(x, x, x, ones({5, 5}, d, at::kBool));
       }},
  };
  return all;
}

TEST(MetaKernels, MakeTheShapesAndTypesThatTheProcessorMakes) {
  fill_meta_kernels();
  for (const auto& [name, call] : calls()) {
    const at::Tensor without = call(at::kMeta), with = call(at::kCPU);
    EXPECT_EQ(without.sizes(), with.sizes()) << name;
    EXPECT_EQ(without.scalar_type(), with.scalar_type()) << name;
    EXPECT_TRUE(without.is_meta()) << name;
  }
}

TEST(MetaKernels, AreRegisteredOnce) {
  fill_meta_kernels();
  EXPECT_NO_THROW(fill_meta_kernels());
}

}  // namespace
}  // namespace pipewright
