// SPDX-License-Identifier: Apache-2.0
// Errors of gradients whose loss scale changes from one to the next.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::testing {
namespace {

constexpr std::array kScales{65536.0, 65536.0, 131072.0, 32768.0, 1.0, 1099511627776.0};
constexpr std::array<TestedCodec, 4> kWithErrors{{{"top_k", "{fraction: 0.2, feedback: tensor}"},
                                                  {"top_k", "{fraction: 0.2, feedback: sample}"},
                                                  {"sign", "{feedback: tensor}"},
                                                  {"sign", "{feedback: sample}"}}};

CodecCall call_of(std::size_t step, double scale) {
  return {.backward = true, .loss_scale = scale, .minibatch = static_cast<int>(step)};
}

TEST(ErrorFeedback, SendsTheSameGradientsWhateverTheirLossScales) {
  at::manual_seed(1);
  for (const TestedCodec& tested : kWithErrors) {
    CodecTrial plain(tested.name, tested.options), scaled(tested.name, tested.options);
    for (std::size_t step = 0; step < kScales.size(); ++step) {
      const at::Tensor x = at::randn({4, 25});
      const double scale = kScales[step];
      const at::Tensor sent = plain.round_trip(x, call_of(step, 1));
      EXPECT_TRUE(scaled.round_trip(x * scale, call_of(step, scale)).equal(sent * scale))
          << tested.name << tested.options << ", step " << step;
    }
  }
}

/// Of a state that names no scale, as older checkpoints do, the next gradient's is taken.
TEST(ErrorFeedback, RestoresErrorsWithTheirLossScale) {
  at::manual_seed(2);
  for (const TestedCodec& tested : kWithErrors)
    for (const bool named : {true, false}) {
      CodecTrial plain(tested.name, tested.options), before(tested.name, tested.options),
          after(tested.name, tested.options);
      const at::Tensor x = at::randn({4, 25}), y = at::randn({4, 25});
      plain.round_trip(x, call_of(0, 1));
      before.round_trip(x * 1024, call_of(0, 1024));
      NamedTensors state = before.sender().state();
      const auto scales =
          std::erase_if(state, [&](const auto& each) { return !named && each.first == "scale"; });
      EXPECT_EQ(scales, named ? 0u : 1u);
      after.sender().restore(state);
      const double scale = named ? 2048 : 1024;
      EXPECT_TRUE(after.round_trip(y * scale, call_of(1, scale))
                      .equal(plain.round_trip(y, call_of(1, 1)) * scale))
          << tested.name << tested.options << named;
    }
}

TEST(ErrorFeedback, NamesNoScaleWithoutOne) {
  CodecTrial codec("sign", "{feedback: tensor}");
  codec.round_trip(at::ones({2, 3}), call_of(0, 0));
  EXPECT_EQ(codec.sender().state().size(), 1u);
}

TEST(ErrorFeedback, RefusesAStateWhoseScaleIsNone) {
  CodecTrial codec("sign", "{feedback: tensor}");
  for (const at::Tensor& scale : {at::zeros({1}, at::kDouble), at::ones({2}, at::kDouble),
                                  at::ones({1}, at::kFloat), at::full({1}, INFINITY, at::kDouble)})
    EXPECT_THROW(codec.sender().restore({{"scale", scale}}), Error);
}

}  // namespace
}  // namespace pipewright::testing
