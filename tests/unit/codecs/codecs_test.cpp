// SPDX-License-Identifier: Apache-2.0
// What every codec promises, whatever it does with the values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::testing {
namespace {

class EveryCodec : public ::testing::TestWithParam<TestedCodec> {
 protected:
  CodecTrial trial() const { return CodecTrial(GetParam().name, GetParam().options); }
};

INSTANTIATE_TEST_SUITE_P(, EveryCodec, ::testing::ValuesIn(kTestedCodecs), codec_test_name);

const std::vector<std::vector<std::int64_t>> kSizes{
    {}, {0}, {1}, {7}, {2, 0, 3}, {4, 9}, {3, 5, 7}, {2, 3, 8, 8}, {16, 65}, {1, 1}};

TEST_P(EveryCodec, GivesSizesAndTypeBackInMemoryOfTheirOwn) {
  for (const auto& sizes : kSizes)
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor x = at::randn(sizes, at::TensorOptions(type));
      const at::Tensor before = x.clone();
      CodecTrial codec = trial();
      const at::Tensor frame = codec.frame(x), y = codec.arrived(frame);
      EXPECT_EQ(y.sizes(), x.sizes());
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_TRUE(y.is_contiguous());
      EXPECT_EQ(y.storage_offset(), 0);
      EXPECT_TRUE(x.equal(before)) << "written to";
      EXPECT_TRUE(y.isfinite().all().item<bool>()) << x.sizes();
    }
}

TEST_P(EveryCodec, HasTheBytesItClaims) {
  for (const auto& sizes : kSizes) {
    CodecTrial codec = trial();
    const at::Tensor frame = codec.frame(at::randn(sizes));
    if (CodecTrial::raw(frame)) continue;
    const auto claimed = codec.codec().payload_bytes(sizes);
    EXPECT_EQ(CodecTrial::payload(frame), claimed.value_or(CodecTrial::payload(frame)))
        << at::IntArrayRef(sizes);
  }
}

TEST_P(EveryCodec, TellsTheSameFromTheSame) {
  const at::Tensor x = at::randn({4, 6, 32});
  EXPECT_TRUE(trial().frame(x, {.seed = 3}).equal(trial().frame(x, {.seed = 3})));
}

TEST_P(EveryCodec, TakesValuesByPositionNotByMemory) {
  const at::Tensor x = at::randn({4, 6, 8, 8});
  const at::Tensor expected = trial().round_trip(x);
  EXPECT_TRUE(trial().round_trip(x.contiguous(at::MemoryFormat::ChannelsLast)).equal(expected));
  const at::Tensor flipped = x.transpose(1, 3).contiguous().transpose(1, 3);
  EXPECT_TRUE(trial().round_trip(flipped).equal(expected));
  const at::Tensor part = at::randn({4, 12, 8, 8}).narrow(1, 3, 6);
  EXPECT_TRUE(trial().round_trip(part).equal(trial().round_trip(part.contiguous())));
  const at::Tensor expanded = at::randn({4, 1, 8}).expand({4, 6, 8});
  EXPECT_TRUE(trial().round_trip(expanded).equal(trial().round_trip(expanded.contiguous())));
}

TEST_P(EveryCodec, LosesNoValueThatIsNotFinite) {
  for (const float odd : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), std::nanf("")})
    for (const std::int64_t at : {0, 100, 255}) {
      at::Tensor x = at::randn({4, 64});
      x.view(-1)[at] = odd;
      EXPECT_FALSE(trial().round_trip(x).isfinite().all().item<bool>()) << odd << " at " << at;
    }
}

TEST_P(EveryCodec, TakesConstantsAndZeros) {
  for (const double constant : {0.0, -0.0, 1.0, -3.5, 1e-30}) {
    const at::Tensor x = at::full({3, 40}, constant);
    const at::Tensor y = trial().round_trip(x);
    EXPECT_TRUE(y.isfinite().all().item<bool>()) << constant;
    // The largest step between levels is that of 4-bit floats, from 4 to 6.
    EXPECT_LE(y.abs().max().item<double>(), std::abs(constant) * 1.2);
  }
}

/// Squares, sums and ranges of such values are infinite; they themselves are not.
TEST_P(EveryCodec, KeepsTheLargestNumbersFinite) {
  at::manual_seed(6);
  const at::Tensor x = (at::rand({4, 6, 16}) * 2 - 1) * 3.3e38;
  if (std::string(GetParam().options) == "{saturate: false}") return;  // as a cast does
  CodecTrial codec = trial();
  for (int minibatch = 0; minibatch < 2; ++minibatch)
    EXPECT_TRUE(codec.round_trip(x, {.minibatch = minibatch}).isfinite().all().item<bool>());
}

/// Bytes that are changed, cut off or too many are refused or decode to something of that size.
TEST_P(EveryCodec, RefusesWhatIsDamaged) {
  at::manual_seed(1);
  CodecTrial codec = trial();
  const at::Tensor x = at::randn({4, 6, 16});
  const at::Tensor frame = codec.frame(x);
  for (std::int64_t n = 0; n < frame.numel(); n += 1 + n / 16)
    EXPECT_THROW(trial().arrived(frame.narrow(0, 0, n).clone()), Error) << n << " bytes";
  EXPECT_THROW(trial().arrived(at::cat({frame, at::zeros({1}, at::kByte)})), Error);
  int decoded = 0;
  for (int round = 0; round < 300; ++round) {
    at::Tensor damaged = frame.clone();
    for (int hits = 0; hits <= round % 3; ++hits)
      damaged[at::randint(frame.numel(), {1}).item<std::int64_t>()] =
          at::randint(256, {1}).item<int>();
    try {
      decoded += trial().arrived(damaged).numel() >= 0;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data) << error.what();
    }
  }
  EXPECT_GT(decoded, 0) << "no change of a mere value was taken";
}

/// What its ends remember is all in state(): with it, others go on with the same bits.
TEST_P(EveryCodec, GoesOnFromItsState) {
  at::manual_seed(4);
  CodecTrial first = trial(), second = trial(), fresh = trial();
  for (int minibatch = 0; minibatch < 3; ++minibatch)
    first.round_trip(at::randn({4, 6, 16}), {.minibatch = minibatch});
  second.sender().restore(first.sender().state());
  second.receiver().restore(first.receiver().state());
  const at::Tensor x = at::randn({4, 6, 16});
  const CodecCall call{.epoch = 1};
  const at::Tensor expected = first.frame(x, call), frame = second.frame(x, call);
  EXPECT_TRUE(frame.equal(expected));
  EXPECT_TRUE(second.arrived(frame, call).equal(first.arrived(expected, call)));
  EXPECT_EQ(fresh.frame(x, call).equal(expected), first.sender().state().empty());
}

/// Evaluation in between leaves no trace.
TEST_P(EveryCodec, RemembersNothingOfEvaluation) {
  at::manual_seed(5);
  CodecTrial with = trial(), without = trial();
  for (int minibatch = 0; minibatch < 3; ++minibatch) {
    const at::Tensor x = at::randn({4, 6, 16});
    const at::Tensor expected = without.round_trip(x, {.minibatch = minibatch});
    with.round_trip(at::randn({4, 6, 16}), {.training = false, .minibatch = minibatch});
    EXPECT_TRUE(with.round_trip(x, {.minibatch = minibatch}).equal(expected));
  }
}

TEST(Codecs, AreAllTestedHere) {
  std::set<std::string> tested;
  for (const TestedCodec& codec : kTestedCodecs) tested.insert(codec.name);
  for (const std::string& name : Registry<Codec>::instance().names())
    EXPECT_TRUE(tested.contains(name)) << name;
}

}  // namespace
}  // namespace pipewright::testing
