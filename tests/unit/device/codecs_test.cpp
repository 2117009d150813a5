// SPDX-License-Identifier: Apache-2.0
// Codecs on another device than the CPU, where LibTorch's operations do what loops do there.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/unit/codecs/codec_trial.h"
#include "tests/unit/device/fake_device.h"
#include "tests/unit/device/stream_model.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using pipewright::testing::CodecTrial;
using pipewright::testing::kTestedCodecs;
using pipewright::testing::TestedCodec;

class CodecElsewhere : public ::testing::TestWithParam<TestedCodec> {
 protected:
  void SetUp() override { StreamModel::instance().take_faults(); }
  void TearDown() override {
    EXPECT_EQ(StreamModel::instance().take_faults(), std::set<std::string>{});
  }
  CodecTrial trial() const { return CodecTrial(GetParam().name, GetParam().options); }
  bool is(const std::set<std::string>& names) const { return names.contains(GetParam().name); }
};

INSTANTIATE_TEST_SUITE_P(, CodecElsewhere, ::testing::ValuesIn(kTestedCodecs),
                         pipewright::testing::codec_test_name);

const at::Device kDevice = fake_device(0);

/// The CPU's generator alone: the fake device has none.
void seed(std::uint64_t value) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(value);
}

/// Values with ties, zeros of both signs, and rows without range.
at::Tensor values(const std::vector<std::int64_t>& sizes) {
  const at::Tensor x = at::randn(sizes) * at::randn(sizes).exp();
  if (x.numel() > 40) {
    x.view({-1}).narrow(0, 3, 9).fill_(0.75);
    x.view({-1})[20] = -0.0;
    x.view({-1}).narrow(0, 21, 12).zero_();
  }
  return x;
}

const std::vector<std::vector<std::int64_t>> kSizes{
    {}, {0}, {1}, {7}, {2, 0, 3}, {4, 9}, {3, 5, 7}, {2, 3, 8, 8}, {16, 65}};

TEST_P(CodecElsewhere, SendsTheSameBytesAsTheCpu) {
  seed(1);
  // Sums are added in another order; the rest is the same arithmetic.
  if (is({"sign", "k_means", "svd", "power_iteration"})) return;
  for (const auto& sizes : kSizes) {
    CodecTrial here = trial(), there = trial();
    for (int minibatch = 0; minibatch < 3; ++minibatch) {
      const at::Tensor x = values(sizes);
      const CodecCall call{.seed = 3, .minibatch = minibatch};
      EXPECT_TRUE(there.payload_of(x.to(kDevice), call).equal(here.payload_of(x, call)))
          << x.sizes();
    }
  }
}

TEST_P(CodecElsewhere, GivesWhatTheCpuGivesWithoutAWaitOfTheHost) {
  seed(2);
  const bool finds_zeros =
      std::string_view(GetParam().options).find("skip_zeros") != std::string::npos;
  for (const auto& sizes : kSizes) {
    CodecTrial here = trial(), there = trial();
    for (int minibatch = 0; minibatch < 3; ++minibatch) {
      const at::Tensor x = values(sizes), moved = x.to(kDevice);
      const CodecCall call{.seed = 3, .minibatch = minibatch};
      const int waits = StreamModel::instance().host_waits();
      const at::Tensor y = there.round_trip(moved, call);
      if (!finds_zeros) {  // their number says how long the payload is
        EXPECT_EQ(StreamModel::instance().host_waits(), waits) << x.sizes();
      }
      EXPECT_EQ(y.device(), kDevice);
      const at::Tensor expected = here.round_trip(x, call), arrived = y.cpu();
      EXPECT_EQ(arrived.sizes(), x.sizes());
      if (is({"sign"}))
        EXPECT_TRUE(at::allclose(arrived, expected, tolerance::kSignRemembered, 0)) << x.sizes();
      else
        EXPECT_TRUE(arrived.equal(expected)) << x.sizes();
    }
  }
}

/// Between a CPU and a device: what crosses is on the receiver's device when it is decoded.
TEST_P(CodecElsewhere, TakesWhatACpuSentAndTheOtherWayAround) {
  seed(4);
  for (const auto& sizes : {std::vector<std::int64_t>{3, 5, 7}, {16, 65}}) {
    CodecTrial here = trial(), up = trial(), down = trial();
    const CodecCall evaluation{.training = false};  // nothing is remembered
    const at::Tensor x = values(sizes), expected = here.round_trip(x, evaluation);
    const Encoded sent = encode(up.sender(), GetParam().name, x, evaluation);
    const at::Tensor above =
        decode(up.receiver(), GetParam().name, {sent.bytes.to(kDevice), {}}, evaluation);
    EXPECT_EQ(above.device(), kDevice);
    EXPECT_TRUE(above.cpu().equal(expected));
    const Encoded back = encode(down.sender(), GetParam().name, x.to(kDevice), evaluation);
    const at::Tensor below =
        decode(down.receiver(), GetParam().name, {back.bytes.cpu(), back.like.cpu()}, evaluation);
    if (is({"sign"}))
      EXPECT_TRUE(at::allclose(below, expected, tolerance::kSignMean, 0));
    else
      EXPECT_TRUE(below.equal(expected));
  }
}

TEST_P(CodecElsewhere, LosesNoValueThatIsNotFiniteAndGoesOn) {
  seed(3);
  for (const float odd : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), std::nanf("")})
    for (const std::int64_t at : {0, 100, 255}) {
      CodecTrial codec = trial();
      for (int minibatch = 0; minibatch < 2; ++minibatch) {
        at::Tensor x = at::randn({4, 4, 16});
        EXPECT_TRUE(codec.round_trip(x.to(kDevice)).cpu().isfinite().all().item<bool>());
        x.view(-1)[at] = odd;
        EXPECT_FALSE(codec.round_trip(x.to(kDevice)).cpu().isfinite().all().item<bool>())
            << odd << " at " << at;
      }
      EXPECT_TRUE(
          codec.round_trip(at::randn({4, 4, 16}).to(kDevice)).cpu().isfinite().all().item<bool>());
    }
}

}  // namespace
}  // namespace pipewright::test
