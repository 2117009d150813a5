// SPDX-License-Identifier: Apache-2.0
// Uniform quantization, against its formula with plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "core/codecs/kinds/uniform_quantizer.h"
#include "core/codecs/loops/noise_loops.h"
#include "tests/unit/codecs/codec_trial.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

/// What shares a range, of the value at (b, c, i) of [B, C, I].
using GroupOf = std::function<std::int64_t(std::int64_t b, std::int64_t c, std::int64_t i)>;

struct Case {
  const char* per;
  GroupOf group;
};

const std::vector<std::int64_t> kUniformSizes{3, 5, 7};

const std::vector<Case> kCases{
    {"per: tensor", [](auto, auto, auto) { return 0; }},
    {"per: channel", [](auto, auto c, auto) { return c; }},
    {"per: token", [](auto b, auto c, auto) { return b * 5 + c; }},
    {"per: group, group: 8", [](auto b, auto c, auto i) { return (b * 35 + c * 7 + i) / 8; }}};

struct Group {
  float least = INFINITY, most = -INFINITY, amax = 0, step = 0;
};

at::Tensor uniform_by_formula(const at::Tensor& x, const GroupOf& group_of, int bits,
                              bool symmetric, std::map<std::int64_t, Group>& groups) {
  const auto each = [&](const auto& work) {
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t c = 0; c < 5; ++c)
        for (std::int64_t i = 0; i < 7; ++i) work(groups[group_of(b, c, i)], b, c, i);
  };
  const auto in = x.accessor<float, 3>();
  const at::Tensor y = at::empty_like(x);
  auto out = y.accessor<float, 3>();
  each([&](Group& g, auto b, auto c, auto i) {
    g.least = std::min(g.least, in[b][c][i]);
    g.most = std::max(g.most, in[b][c][i]);
    g.amax = std::max(g.amax, std::abs(in[b][c][i]));
  });
  const float half = std::ldexp(1.0F, bits - 1) - 1, all = std::ldexp(1.0F, bits) - 1;
  for (auto& [_, g] : groups) g.step = symmetric ? g.amax / half : (g.most - g.least) / all;
  each([&](Group& g, auto b, auto c, auto i) {
    const float v = in[b][c][i];
    if (symmetric)
      out[b][c][i] = g.step == 0 ? 0 : std::clamp(std::nearbyint(v / g.step), -half, half) * g.step;
    else
      out[b][c][i] =
          g.step == 0
              ? g.least
              : std::clamp(std::nearbyint((v - g.least) / g.step), 0.0F, all) * g.step + g.least;
  });
  return y;
}

TEST(Uniform, IsItsFormulaWhateverSharesARange) {
  at::manual_seed(3);
  const at::Tensor x = at::randn(kUniformSizes) * at::randn({3, 5, 1}).exp();
  x.select(0, 1).select(0, 2).fill_(0.5);  // a row without range
  x.select(0, 0).select(0, 1).clamp_min_(0);
  for (const Case& c : kCases)
    for (const int bits : {1, 2, 4, 7, 8, 12, 16})
      for (const bool symmetric : {false, true}) {
        if (symmetric && bits == 1) continue;
        const std::string options =
            concat("{bits: ", bits, ", ", c.per, ", symmetric: ", symmetric, "}");
        CodecTrial codec("uniform", options);
        std::map<std::int64_t, Group> groups;
        const at::Tensor expected = uniform_by_formula(x, c.group, bits, symmetric, groups);
        const at::Tensor frame = codec.frame(x), y = codec.arrived(frame);
        EXPECT_TRUE(y.equal(expected)) << options << (y - expected).abs().max();
        EXPECT_EQ(CodecTrial::payload(frame),
                  (105 * bits + 7) / 8 + std::ssize(groups) * (symmetric ? 4 : 8))
            << options;
        // Half a step, and what float32 rounds: in the quotient half a unit of it times the step,
        // in x' two roundings of at most |x|max's last place.
        double bound = 0;
        for (const auto& [_, g] : groups)
          bound = std::max(bound, g.step * (0.5 + 0x1p-8) + g.amax * 0x1p-22);
        EXPECT_LE((y - x).abs().max().item<double>(), bound) << options;
      }
}

TEST(Uniform, PacksCodesFromTheLowestBitAfterItsTable) {
  CodecTrial codec("uniform", "{bits: 3}");
  const at::Tensor frame = codec.frame(at::tensor({0.F, 7.F, 1.F, 2.4F, 2.5F, 3.5F, 6.6F}));
  const at::Tensor payload = frame.narrow(0, frame.numel() - 11, 11);
  EXPECT_TRUE(payload.narrow(0, 0, 8).view(at::kFloat).equal(at::tensor({0.F, 1.F})));
  // Codes 0 7 1 2 2 4 7; of bits, the lowest first: 000 111 10|0 010 010 0|01 111.
  EXPECT_EQ(payload[8].item<int>(), 0b01111000);
  EXPECT_EQ(payload[9].item<int>(), 0b00100100);
  EXPECT_EQ(payload[10].item<int>(), 0b00011110);
}

TEST(Uniform, KeepsZeroWhereLevelsAreSymmetric) {
  const at::Tensor x = at::tensor({-3.F, 0.F, -0.F, 1.F, 2.9F});
  EXPECT_TRUE(CodecTrial("uniform", "{bits: 2, symmetric: true}")
                  .round_trip(x)
                  .equal(at::tensor({-3.F, 0.F, 0.F, 0.F, 3.F})));
}

TEST(Uniform, SendsARangeThatIsTooLargeAsItIs) {
  const at::Tensor x = at::tensor({-3e38F, 3e38F});
  CodecTrial codec("uniform");
  EXPECT_TRUE(CodecTrial::raw(codec.frame(x)));
  EXPECT_TRUE(codec.round_trip(x).equal(x));
}

TEST(Uniform, RoundsAtRandomWithoutBias) {
  // Levels are 0 … 3; 4000 values of 0.3 and 2.25 between two that hold the range.
  at::Tensor x = at::full({4001}, 0.3F);
  x.narrow(0, 2000, 2000).fill_(2.25F);
  x[0] = 0;
  x[4000] = 3;
  const at::Tensor y =
      CodecTrial("uniform", "{bits: 2, rounding: stochastic}").round_trip(x, {.seed = 5});
  EXPECT_LT((y - x).abs().max().item<float>(), 1);
  EXPECT_TRUE(y.equal(y.round()));
  EXPECT_NEAR(y.narrow(0, 1, 1999).mean().item<double>(), 0.3, tolerance::share_of(1999, 0.3));
  EXPECT_NEAR(y.narrow(0, 2000, 2000).mean().item<double>(), 2.25, tolerance::share_of(2000, 0.25));
}

TEST(Uniform, LeavesLevelsThemselvesAloneAtRandom) {
  const at::Tensor x = at::arange(256).to(at::kFloat).repeat({20});
  EXPECT_TRUE(CodecTrial("uniform", "{rounding: stochastic}").round_trip(x).equal(x));
}

TEST(Uniform, DrawsByPlaceInTheMiniBatchNotByMicroBatch) {
  const at::Tensor x = at::randn({6, 3, 11});
  CodecTrial codec("uniform", "{bits: 3, per: token, rounding: stochastic}");
  const CodecCall call{.seed = 9, .edge = 1, .epoch = 2, .minibatch = 7};
  const at::Tensor whole = codec.round_trip(x, call);
  CodecCall second = call;
  second.first_sample = 2;
  EXPECT_TRUE(whole.equal(at::cat(
      {codec.round_trip(x.narrow(0, 0, 2), call), codec.round_trip(x.narrow(0, 2, 4), second)})));
  for (CodecCall other : {CodecCall{.seed = 8, .edge = 1, .epoch = 2, .minibatch = 7},
                          CodecCall{.seed = 9, .edge = 0, .epoch = 2, .minibatch = 7},
                          CodecCall{.seed = 9, .edge = 1, .epoch = 1, .minibatch = 7},
                          CodecCall{.seed = 9, .edge = 1, .epoch = 2, .minibatch = 6}})
    EXPECT_FALSE(whole.equal(codec.round_trip(x, other)));
  CodecCall back = call;
  back.backward = true;
  EXPECT_FALSE(whole.equal(codec.round_trip(x, back)));
}

TEST(Uniform, TakesItsNoiseFromPhilox) {
  for (const std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{0x3fffffff0}}) {
    std::vector<float> noise(200);
    uniform_noise(7, 1234567890123, first, noise);
    for (std::size_t i = 0; i < noise.size(); ++i)
      EXPECT_EQ(noise[i], static_cast<float>(
                              philox(7, (first + i) / 4, 1234567890123)[(first + i) % 4] >> 8) /
                              16777216)
          << first << " + " << i;
  }
}

TEST(Uniform, NeedsTwoBitsForSymmetry) {
  Problems problems;
  const Value value = parse_yaml("{bits: 1, symmetric: true}", "codec.yaml");
  Options options(&value, "codec", problems);
  Registry<Codec>::instance().find("uniform")->make(options);
  EXPECT_FALSE(problems.empty());
}

}  // namespace
}  // namespace pipewright::testing
