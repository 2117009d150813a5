// SPDX-License-Identifier: Apache-2.0
// top_k and error feedback, against a stable sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/codecs/loops/sparse_loops.h"
#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::testing {
namespace {

/// The k largest by absolute value, the first of equal ones; the rest 0.
at::Tensor by_sorting(const at::Tensor& x, std::int64_t k) {
  const at::Tensor flat = x.contiguous().view({-1}), y = at::zeros_like(flat);
  std::vector<std::int64_t> order(static_cast<std::size_t>(flat.numel()));
  std::iota(order.begin(), order.end(), 0);
  const float* const value = flat.const_data_ptr<float>();
  std::ranges::stable_sort(order, std::greater<>(), [&](auto i) { return std::abs(value[i]); });
  for (std::int64_t j = 0; j < k; ++j) {
    const std::int64_t i = order[static_cast<std::size_t>(j)];
    y[i] = flat[i];
  }
  return y.view(x.sizes());
}

TEST(TopK, SendsTheLargestAndOfEqualOnesTheFirst) {
  at::manual_seed(1);
  for (const std::int64_t n : {1, 2, 9, 100, 1003})
    for (const double fraction : {0.02, 0.1, 0.5, 1.0})
      for (const bool ties : {false, true}) {
        const at::Tensor x = ties ? at::randint(-3, 4, {n}).to(at::kFloat) : at::randn({n});
        const auto k =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(fraction * static_cast<double>(n)));
        CodecTrial codec("top_k", concat("{fraction: ", fraction, "}"));
        const at::Tensor frame = codec.frame(x);
        EXPECT_TRUE(codec.arrived(frame).equal(by_sorting(x, k))) << n << ' ' << fraction << ties;
        EXPECT_EQ(CodecTrial::payload(frame), 4 * k + std::min(4 * k, (n + 7) / 8));
      }
}

TEST(TopK, KeepsSignsAndTakesTheSmallestNumbers) {
  const at::Tensor x = at::tensor({0.F, -1e-45F, 1e-44F, -0.F, -2e-44F});
  EXPECT_TRUE(CodecTrial("top_k", "{fraction: 0.6}")
                  .round_trip(x)
                  .equal(at::tensor({0.F, -1e-45F, 1e-44F, 0.F, -2e-44F})));
}

TEST(TopK, SendsWithFeedbackWhatWasLeftOutLater) {
  at::manual_seed(2);
  CodecTrial codec("top_k", "{fraction: 0.1, feedback: tensor}");
  at::Tensor error = at::zeros({5, 20});
  for (int step = 0; step < 30; ++step) {
    const at::Tensor x = at::randn({5, 20}), v = x + error, sent = by_sorting(v, 10);
    EXPECT_TRUE(codec.round_trip(x, {.backward = true, .minibatch = step}).equal(sent)) << step;
    error = v - sent;
  }
}

TEST(TopK, RemembersErrorsOfEachSample) {
  at::manual_seed(3);
  CodecTrial codec("top_k", "{fraction: 0.25, feedback: sample}");
  EXPECT_TRUE(codec.codec().by_sample());
  std::map<std::int64_t, at::Tensor> errors;
  for (const std::vector<std::int64_t>& samples :
       {std::vector<std::int64_t>{3, 1, 4}, {10, 5}, {4, 5, 3, 9}, {1}, {9, 3}}) {
    at::Tensor x = at::randn({std::ssize(samples), 8}), v = x.clone();
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (errors.contains(samples[i])) v[static_cast<std::int64_t>(i)] += errors[samples[i]];
    const at::Tensor sent = by_sorting(v, v.numel() / 4);
    EXPECT_TRUE(codec.round_trip(x, {.samples = samples}).equal(sent));
    for (std::size_t i = 0; i < samples.size(); ++i)
      errors[samples[i]] = (v - sent)[static_cast<std::int64_t>(i)].clone();
  }
}

TEST(TopK, MasksGradientsOnlyIfAsked) {
  const at::Tensor x = at::tensor({1.F, -5.F, 0.F, 4.F}), g = at::tensor({1.F, 2.F, 3.F, 4.F});
  CodecTrial plain("top_k", "{fraction: 0.5}"),
      masking("top_k", "{fraction: 0.5, mask_gradient: true}");
  const CodecCall first{.minibatch = 3, .first_sample = 0},
      second{.minibatch = 3, .first_sample = 4};
  plain.frame(x, first);
  masking.frame(x, first);
  masking.frame(-x.flip(0), second);
  CodecCall back = first;
  back.backward = true;
  EXPECT_TRUE(plain.sender().through(g, back).equal(g));
  CodecCall back2 = second;
  back2.backward = true;
  EXPECT_TRUE(masking.sender().through(g, back2).equal(at::tensor({1.F, 0.F, 3.F, 0.F})));
  EXPECT_TRUE(masking.sender().through(g, back).equal(at::tensor({0.F, 2.F, 0.F, 4.F})));
}

TEST(TopK, KeepsAMaskUntilTheLastGradientHasComeBack) {
  const at::Tensor x = at::tensor({1.F, -5.F, 0.F, 4.F}), g = at::tensor({1.F, 2.F, 3.F, 4.F});
  CodecTrial codec("top_k", "{fraction: 0.5, mask_gradient: true}");
  const CodecCall awaited{.gradients = 2, .minibatch = 3}, none{.gradients = 0, .minibatch = 4};
  codec.frame(x, awaited);
  codec.frame(x, none);
  for (int gradient = 0; gradient < 2; ++gradient)
    EXPECT_TRUE(codec.sender().through(g, awaited).equal(at::tensor({0.F, 2.F, 0.F, 4.F})));
  EXPECT_TRUE(codec.sender().through(g, awaited).equal(g)) << "the mask is still there";
  EXPECT_TRUE(codec.sender().through(g, none).equal(g)) << "a mask that nobody needs";
}

TEST(TopK, RefusesPositionsThatDoNotAscendOrLieOutside) {
  const std::vector<float> values{1, 2};
  std::vector<float> x(10);
  using Positions = std::vector<std::uint32_t>;
  for (const Positions& bad : {Positions{3, 3}, {4, 1}, {1, 10}, {1, 0xffffffff}})
    EXPECT_FALSE(scatter(values, bad, x));
  EXPECT_TRUE(scatter(values, Positions{0, 9}, x));
  using Bits = std::vector<std::byte>;
  for (const Bits& bad : {Bits{std::byte{1}, std::byte{0}},
                          {std::byte{7}, std::byte{0}},
                          {std::byte{1}, std::byte{4}}})
    EXPECT_FALSE(scatter(values, bad, x));
  EXPECT_TRUE(scatter(values, Bits{std::byte{1}, std::byte{2}}, x));
}

}  // namespace
}  // namespace pipewright::testing
