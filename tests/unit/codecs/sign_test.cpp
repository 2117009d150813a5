// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/codecs/codec_trial.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

/// sgn(v)·mean|v|, with the sign of 0 positive.
at::Tensor by_formula(const at::Tensor& v) {
  return at::where(v < 0, -1.0F, 1.0F) * v.abs().to(at::kDouble).mean().to(at::kFloat);
}

TEST(Sign, IsTheSignTimesTheMeanMagnitude) {
  at::manual_seed(1);
  for (const std::int64_t n : {1, 2, 7, 8, 100, 4099}) {
    const at::Tensor x = at::randn({n});
    CodecTrial codec("sign");
    const at::Tensor frame = codec.frame(x);
    // Both means are sums in float64, rounded once; their order may differ.
    EXPECT_TRUE(at::allclose(codec.arrived(frame), by_formula(x), tolerance::kSignMean, 0));
    EXPECT_EQ(CodecTrial::payload(frame), 4 + (n + 7) / 8);
  }
  EXPECT_TRUE(CodecTrial("sign")
                  .round_trip(at::tensor({-0.F, 2.F, -4.F, 0.F}))
                  .equal(at::tensor({1.5F, 1.5F, -1.5F, 1.5F})));
}

TEST(Sign, SendsWithFeedbackWhatWasLostLater) {
  at::manual_seed(2);
  CodecTrial codec("sign", "{feedback: tensor}");
  at::Tensor error = at::zeros({4, 25}), sent = at::zeros({4, 25}), wanted = at::zeros({4, 25});
  for (int step = 0; step < 40; ++step) {
    const at::Tensor x = at::randn({4, 25}) + 0.1, v = x + error;
    const at::Tensor now = codec.round_trip(x, {.backward = true, .minibatch = step});
    EXPECT_TRUE(at::allclose(now, by_formula(v), tolerance::kSignMean, 0)) << step;
    error = v - now;
    sent += now;
    wanted += x;
  }
  // The sums telescope: what is missing is the last error; 80 sums of float32 of about 30.
  EXPECT_LT((wanted - sent - error).abs().max().item<double>(), tolerance::telescoped32(40, 2, 30));
}

}  // namespace
}  // namespace pipewright::testing
