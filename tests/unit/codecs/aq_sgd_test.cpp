// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::testing {
namespace {

using Samples = std::vector<std::int64_t>;

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.equal(y.second);
  });
}

const std::vector<Samples> kVisits{{4, 1, 7}, {2, 0}, {1, 2, 9}, {7, 4}, {9, 0, 3, 1}, {3, 7, 2}};

TEST(AqSgd, SendsWhatChangedSinceASamplesLastVisit) {
  for (const bool halves : {false, true}) {
    at::manual_seed(1);
    CodecTrial codec("aq_sgd", concat("{bits: 3, cache: ", halves ? "float16" : "float32", "}")),
        quantizer("uniform", "{bits: 3, per: token, symmetric: true}");
    const auto kept = [&](const at::Tensor& row) {
      return halves ? row.to(at::kHalf).to(at::kFloat) : row.clone();
    };
    std::map<std::int64_t, at::Tensor> memory;
    for (const Samples& samples : kVisits) {
      const at::Tensor x = at::randn({std::ssize(samples), 5, 6});
      const at::Tensor y = codec.round_trip(x, {.samples = samples});
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const at::Tensor row = x[static_cast<std::int64_t>(i)];
        at::Tensor expected = row;  // a first visit is exact
        if (const auto m = memory.find(samples[i]); m != memory.end())
          expected = kept(m->second + quantizer.round_trip(row - m->second));
        EXPECT_TRUE(y[static_cast<std::int64_t>(i)].equal(expected)) << samples[i];
        memory[samples[i]] = kept(expected);
      }
      EXPECT_TRUE(same(codec.sender().state(), codec.receiver().state())) << "ends differ";
    }
  }
}

TEST(AqSgd, ComesCloserToWhatDoesNotChange) {
  at::manual_seed(2);
  CodecTrial codec("aq_sgd", "{bits: 2, symmetric: false, cache: float32}");
  const Samples samples{8, 3};
  codec.round_trip(at::randn({2, 40}), {.samples = samples});
  const at::Tensor x = at::randn({2, 40});
  double before = 10;
  for (int visit = 0; visit < 6; ++visit) {
    const double now = (codec.round_trip(x, {.samples = samples}) - x).abs().max().item<double>();
    EXPECT_LT(now, 0.5 * before) << visit;  // a third of the range, half a step of which is lost
    before = now;
  }
}

TEST(AqSgd, QuantizesGradientsAndEvaluationDirectly) {
  const at::Tensor x = at::randn({3, 20});
  CodecTrial codec("aq_sgd", "{bits: 5}"),
      plain("uniform", "{bits: 5, per: token, symmetric: true}");
  codec.round_trip(at::randn({3, 20}));
  EXPECT_TRUE(codec.round_trip(x, {.backward = true}).equal(plain.round_trip(x)));
  EXPECT_TRUE(codec.round_trip(x, {.training = false}).equal(plain.round_trip(x)));
  const Samples two{0, 1};  // not one for each row
  EXPECT_TRUE(codec.round_trip(x, {.samples = two}).equal(plain.round_trip(x)));
}

TEST(AqSgd, HasTheBytesOfFirstVisitsAndOfChanges) {
  CodecTrial codec("aq_sgd", "{bits: 4}");
  const at::Tensor x = at::randn({3, 20});
  const Samples first{0, 1, 2}, mixed{2, 5, 1};
  EXPECT_EQ(CodecTrial::payload(codec.frame(x, {.samples = first})), 8 + 3 * 80);
  EXPECT_EQ(CodecTrial::payload(codec.frame(x, {.samples = mixed})), 8 + 80 + 2 * (4 + 10));
}

TEST(AqSgd, TakesMessagesInAnyOrder) {
  at::manual_seed(3);
  CodecTrial codec("aq_sgd");
  const Samples a{1, 2}, b{3, 4};
  codec.round_trip(at::randn({2, 7}), {.samples = a});
  codec.round_trip(at::randn({2, 7}), {.samples = b});
  const at::Tensor first = codec.frame(at::randn({2, 7}), {.samples = a}),
                   second = codec.frame(at::randn({2, 7}), {.samples = b});
  codec.arrived(second, {.samples = b});
  codec.arrived(first, {.samples = a});
  EXPECT_TRUE(same(codec.sender().state(), codec.receiver().state()));
}

TEST(AqSgd, RefusesChangesOfSamplesThatThisEndDoesNotKnow) {
  CodecTrial codec("aq_sgd", "{bits: 16, symmetric: false, per: group, group: 1}"),
      other("aq_sgd", "{bits: 16, symmetric: false, per: group, group: 1}");
  const Samples samples{6};
  codec.round_trip(at::randn({1, 8}), {.samples = samples});
  const at::Tensor frame = codec.frame(at::randn({1, 8}), {.samples = samples});
  EXPECT_THROW(other.arrived(frame, {.samples = samples}), Error);
}

TEST(AqSgd, LeavesBothEndsAloneWhereAValueIsNotFinite) {
  CodecTrial codec("aq_sgd");
  const Samples samples{6, 7};
  codec.round_trip(at::randn({2, 8}), {.samples = samples});
  const NamedTensors before = codec.sender().state();
  codec.round_trip(at::full({2, 8}, std::nanf("")), {.samples = samples});
  EXPECT_TRUE(same(codec.sender().state(), before));
  EXPECT_TRUE(same(codec.receiver().state(), before));
}

}  // namespace
}  // namespace pipewright::testing
