// SPDX-License-Identifier: Apache-2.0
// Codecs on a real device.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "core/config/value.h"
#include "core/runtime/devices/device.h"
#include "tests/unit/codecs/codec_trial.h"
#include "tests/unit/skips.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

const int kDevices = cuda_device_count();

class GpuCodec : public ::testing::TestWithParam<TestedCodec> {
 protected:
  void SetUp() override {
    if (kDevices < 1) PIPEWRIGHT_LACKS("gpu") << "LibTorch can use no CUDA device";
  }
  CodecTrial trial() const { return CodecTrial(GetParam().name, GetParam().options); }
  /// The option of svd, or its default.
  std::int64_t svd_rank() const {
    const Value options = parse_yaml(GetParam().options, "codec");
    const Value* const rank = options.find("rank");
    return rank == nullptr ? 8 : rank->integer;
  }
  bool is(const std::set<std::string>& names) const { return names.contains(GetParam().name); }
};

INSTANTIATE_TEST_SUITE_P(, GpuCodec, ::testing::ValuesIn(kTestedCodecs), codec_test_name);

TEST_P(GpuCodec, GivesWhatTheCpuGives) {
  at::manual_seed(1);
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{}, {0}, {7}, {3, 5, 7}, {2, 3, 8, 8}, {16, 65}, {8, 24, 1000}}) {
    CodecTrial here = trial(), there = trial();
    for (int minibatch = 0; minibatch < 3; ++minibatch) {
      const at::Tensor x = at::randn(sizes) * at::randn(sizes).exp();
      const CodecCall call{.seed = 3, .minibatch = minibatch};
      const at::Tensor expected = here.round_trip(x, call),
                       arrived = there.round_trip(x.to(at::kCUDA), call).cpu();
      if (is({"svd"}))
        EXPECT_LE((arrived - expected).norm().item<double>(), truncation_tolerance(x, svd_rank()))
            << x.sizes();
      else if (is({"power_iteration"}))
        EXPECT_LE((arrived - expected).norm().item<double>(),
                  tolerance::kPowerIterationElsewhere * expected.norm().item<double>())
            << x.sizes();
      else if (is({"sign"}))
        EXPECT_TRUE(at::allclose(arrived, expected, tolerance::kSignRemembered, 0)) << x.sizes();
      else if (is({"k_means"}))
        EXPECT_TRUE(at::allclose(
            arrived, expected, 0,
            x.numel() == 0 ? 0 : tolerance::kMeansOnGpu * expected.abs().max().item<double>()))
            << x.sizes();
      else
        EXPECT_TRUE(arrived.equal(expected)) << x.sizes();
    }
  }
}

TEST_P(GpuCodec, LosesNoValueThatIsNotFinite) {
  for (const float odd :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), NAN}) {
    CodecTrial codec = trial();
    at::Tensor x = at::randn({4, 4, 16});
    codec.round_trip(x.to(at::kCUDA));
    x.view(-1)[100] = odd;
    EXPECT_FALSE(codec.round_trip(x.to(at::kCUDA)).isfinite().all().item<bool>()) << odd;
    EXPECT_TRUE(
        codec.round_trip(at::randn({4, 4, 16}).to(at::kCUDA)).isfinite().all().item<bool>());
  }
}

}  // namespace
}  // namespace pipewright::testing
