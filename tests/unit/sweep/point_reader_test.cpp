// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/point_reader.h"
#include "core/experiment/reading.h"

#include <gtest/gtest.h>

#include "core/config/merge.h"
#include "tests/unit/config/error_text.h"

namespace pipewright {
namespace {

std::vector<SweepPoint> points(const std::string& sweep) {
  return expand_sweep(
      parse_yaml("name: x\nmodel: {name: mlp}\noptimizer: {name: sgd}\nsweep: " + sweep, "x.yaml"));
}

TEST(PointReader, SaysOfEverySeedWhatReadingItSays) {
  PointReader reader;
  for (const SweepPoint& point : points(
           "{grid: {optimizer.lr: [0.1, 0.2], pipeline.stages: [1, 2], train.seed: [1, 2, 3]}}")) {
    const PointExperiment planned = reader.read(point.document);
    const Experiment experiment = read_experiment(point.document);
    EXPECT_EQ(to_yaml(planned.resolved.whole()), to_yaml(experiment.resolved));
    EXPECT_EQ(planned.digest, experiment.digest);
    EXPECT_EQ(planned.resolved.find_path("train.seed"),
              *experiment.resolved.find_path("train.seed"));
    EXPECT_EQ(planned.resolved.find_path("train"), *experiment.resolved.find("train"));
  }
}

TEST(PointReader, RunsThatDifferInTheirSeedShareTheRest) {
  PointReader reader;
  const std::vector<SweepPoint> runs = points("{grid: {train.seed: [1, 2]}}");
  EXPECT_EQ(&reader.read(runs[0].document).resolved.of_any_seed(),
            &reader.read(runs[1].document).resolved.of_any_seed());
}

TEST(PointReader, ASeedThatIsNoneIsRefusedHoweverManyAreFine) {
  PointReader reader;
  const std::vector<SweepPoint> runs = points("{grid: {train.seed: [1, -1]}}");
  reader.read(runs[0].document);
  EXPECT_NE(error_text([&] { reader.read(runs[1].document); }).find("train.seed is -1"),
            std::string::npos);
}

TEST(PointReader, EqualTextsOfOtherFilesAreNotTheSamePath) {
  Value here = parse_yaml("{model: {weights: w.safetensors}, train: {seed: 1}}", "a/x.yaml");
  Value there = parse_yaml("{model: {weights: w.safetensors}, train: {seed: 2}}", "b/x.yaml");
  EXPECT_NE(key_but_seed(here), key_but_seed(there));
}

}  // namespace
}  // namespace pipewright
