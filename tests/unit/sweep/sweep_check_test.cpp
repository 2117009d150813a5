// SPDX-License-Identifier: Apache-2.0
// A sweep is checked with data that are read once, however many points have them.
#include "core/sweep/sweep_check.h"

#include <gtest/gtest.h>

#include "core/nn/dataset.h"
#include "core/sweep/sweep_plan.h"

namespace pipewright {
namespace {

int asked = 0, opened = 0;  // calls of form() and open()

/// Samples that count how often they are read.
class Counted final : public Dataset {
 public:
  explicit Counted(Options& options)
      : samples_(options.integer("samples", 8, "Samples.", Range{1, 100})) {}

  void open(const DatasetRequest&) override { ++opened; }
  SampleForm form(Task) const override {
    ++asked;
    return {.shape = {4}, .classes = 2};
  }
  std::int64_t size(Split) const override { return samples_; }
  std::vector<std::int64_t> sample_shape() const override { return {4}; }
  std::int64_t classes() const override { return 2; }
  Batch batch(Split, std::span<const std::int64_t>, const RandomStream*) const override {
    PIPEWRIGHT_CHECK(false, "a check trains nothing");
  }

 private:
  std::int64_t samples_;
};

PIPEWRIGHT_DATASET(counted, Counted, "Samples of this test.")

/// A sweep whose neighbouring points have different data.
Value sweep() {
  return parse_yaml(
      "name: x\ndataset: {name: counted}\nmodel: {name: mlp}\nloader: {batch_size: 4}\n"
      "sweep: {grid: {optimizer.lr: [0.1, 0.2, 0.3], dataset.samples: [8, 16], "
      "train.seed: [1, 2]}}",
      "x.yaml");
}

TEST(SweepCheck, OpensEachDataSetOnce) {
  asked = opened = 0;
  std::vector<std::size_t> samples;
  const std::size_t runs = check_sweep(sweep(), {}, std::nullopt,
                                       [&](const std::string&, std::size_t, const Plan& plan,
                                           const auto&) { samples.push_back(plan.train.size()); });
  EXPECT_EQ(runs, 12u);
  EXPECT_EQ(samples, (std::vector<std::size_t>{8, 16, 8, 16, 8, 16}));
  EXPECT_EQ(opened, 2);
  EXPECT_EQ(asked, 2);
}

TEST(SweepCheck, APlannedSweepAsksEachDataSetOnceForItsForm) {
  asked = opened = 0;
  EXPECT_EQ(plan_sweep(sweep(), "out").size(), 12u);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(opened, 0);
}

}  // namespace
}  // namespace pipewright
