// SPDX-License-Identifier: Apache-2.0
// fp16 and bf16, against LibTorch's casts.
#include <gtest/gtest.h>

#include <limits>

#include "core/codecs/loops/small_float_loops.h"
#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::testing {
namespace {

/// Every exponent, mantissas around every rounding of 10 and 7 bits, both signs; all finite.
at::Tensor floats_of_every_kind() {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x7f80; high += 1)  // sign, exponent and 7 bits
    for (const std::uint32_t low : {0U, 1U, 0x0fffU, 0x1000U, 0x1001U, 0x2fffU, 0x3000U, 0x3001U,
                                    0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      for (const std::uint32_t sign : {0U, 0x80000000U})
        values.push_back(std::bit_cast<float>(sign | (high << 16) | low));
  return at::tensor(values);
}

std::int64_t differing(const at::Tensor& a, const at::Tensor& b) {
  return (a.view(at::kInt) != b.view(at::kInt)).sum().item<std::int64_t>();  // −0 is not 0
}

TEST(Halves, RoundAsLibTorchsCastsDo) {
  const at::Tensor x = floats_of_every_kind();
  const at::Tensor halves = x.to(at::kHalf).to(at::kFloat),
                   brains = x.to(at::kBFloat16).to(at::kFloat);
  EXPECT_EQ(differing(CodecTrial("fp16", "{saturate: false}").round_trip(x), halves), 0);
  EXPECT_EQ(differing(CodecTrial("fp16").round_trip(x), halves.clamp(-65504, 65504)), 0);
  EXPECT_EQ(differing(CodecTrial("bf16").round_trip(x), brains), 0);
}

TEST(Halves, SaturateUnlessAskedNotTo) {
  const at::Tensor x = at::tensor({1e6F, -65520.F, 65519.F, 3e38F});
  EXPECT_TRUE(
      CodecTrial("fp16").round_trip(x).equal(at::tensor({65504.F, -65504.F, 65504.F, 65504.F})));
  EXPECT_EQ(CodecTrial("fp16", "{saturate: false}").round_trip(x).isinf().sum().item<int>(), 3);
  EXPECT_TRUE(CodecTrial("bf16").round_trip(x).isfinite().all().item<bool>());
}

TEST(Halves, AreTwoBytesAndRawOnlyWhereAValueIsNotFinite) {
  for (const char* name : {"fp16", "bf16"})
    for (const std::int64_t n : {0, 1, 31, 1000}) {
      at::Tensor x = at::randn({n});
      EXPECT_EQ(CodecTrial::payload(CodecTrial(name).frame(x)), 2 * n);
      EXPECT_FALSE(CodecTrial::raw(CodecTrial(name).frame(x)));
      if (n == 0) continue;
      x[n - 1] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(CodecTrial::raw(CodecTrial(name).frame(x)));
    }
}

}  // namespace
}  // namespace pipewright::testing
