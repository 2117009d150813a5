// SPDX-License-Identifier: Apache-2.0
// How layers are cut into stages, and what is refused.
#include "core/experiment/balance.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/models/model_fixture.h"

namespace pipewright::test {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Layers of 100, 100, 1000, 100 and 11 parameters or so.
constexpr const char* kWidths = "{widths: [9, 10, 9, 100, 1, 10]}";

Sizes cut(int stages, const std::string& rule, const Sizes& list = {}) {
  const auto model = make_model("mlp", kWidths);
  return balanced(*model, model->layers(), stages, rule, list);
}

std::string refusal(int stages, const std::string& rule, const Sizes& list = {}) {
  try {
    cut(stages, rule, list);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.message();
  }
  return "nothing is refused";
}

TEST(Balance, ByLayersGivesEqualCountsTheLargerFirst) {
  EXPECT_EQ(cut(2, "layers"), (Sizes{3, 2}));
  EXPECT_EQ(cut(5, "layers"), (Sizes{1, 1, 1, 1, 1}));
  EXPECT_EQ(cut(1, "layers"), (Sizes{5}));
}

TEST(Balance, ByParametersMakesTheLargestStageSmall) {
  EXPECT_EQ(cut(3, "parameters"), (Sizes{2, 1, 2}));
}

TEST(Balance, ByListTakesTheListAsItIs) {
  EXPECT_EQ(cut(2, "", {1, 4}), (Sizes{1, 4}));
}

TEST(Balance, ByPublishedCutIsTheModels) {
  const auto vgg = make_model("vgg16");
  for (int stages = 1; stages <= 8; ++stages) {
    const Sizes published = vgg->published_balance(stages);
    if (published.empty()) continue;
    EXPECT_EQ(balanced(*vgg, vgg->layers(), stages, "published", {}), published);
  }
}

TEST(Balance, RefusesMoreStagesThanLayers) {
  EXPECT_EQ(refusal(6, "parameters"),
            "pipeline.stages is 6; the model has 5 layers, and a stage holds at least one");
}

TEST(Balance, RefusesAListThatDoesNotFit) {
  EXPECT_EQ(refusal(3, "", {1, 4}),
            "pipeline.balance is [1, 4], which makes 2 stages; pipeline.stages is 3");
  EXPECT_EQ(refusal(2, "", {1, 3}), "pipeline.balance is [1, 3], in sum 4 layers; the model has 5");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(refusal(2, "", {most, most}).find("in sum 9,223,372,036,854,775,807 layers"),
            std::string::npos);
}

TEST(Balance, RefusesAPublishedCutThatDoesNotExist) {
  EXPECT_EQ(
      refusal(2, "published"),
      "pipeline.balance is published, but no cut of this model into 2 stages is; use balance: "
      "parameters");
}

}  // namespace
}  // namespace pipewright::test
