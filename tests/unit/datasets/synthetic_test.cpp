// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

const DatasetRequest kRequest{.model_input = {3, 4}, .model_classes = 5};

struct Everything {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  bool operator==(const Everything&) const = default;
};

Everything everything(const std::string& yaml, Split split = Split::Train,
                      const DatasetRequest& request = kRequest) {
  const auto data = make_dataset("synthetic", yaml);
  data->open(request);
  const Batch batch = data->batch(split, first_indices(data->size(split)), nullptr);
  return {values_of<float>(batch.x[0]), values_of<std::int64_t>(batch.y)};
}

TEST(Synthetic, TakesShapeAndClassesFromTheModelUnlessGiven) {
  const auto data = make_dataset("synthetic", "{}");
  data->open(kRequest);
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(data->classes(), 5);
  EXPECT_EQ(data->size(Split::Train), 512);
  EXPECT_EQ(data->size(Split::Test), 256);

  const auto given = make_dataset("synthetic", "{shape: [7], classes: 2, train: 10, test: 4}");
  given->open(kRequest);
  const Batch batch = given->batch(Split::Train, first_indices(10), nullptr);
  EXPECT_EQ(batch.x[0].sizes().vec(), (std::vector<std::int64_t>{10, 7}));
  EXPECT_EQ(given->classes(), 2);
}

TEST(Synthetic, ComesAgainWhereFewSamplesAreDistinct) {
  const auto all = make_dataset("synthetic", "{train: 8, test: 2, distinct: 3}");
  all->open(kRequest);
  EXPECT_EQ(all->size(Split::Train), 8);
  const Batch batch = all->batch(Split::Train, first_indices(8), nullptr);
  EXPECT_TRUE(batch.x[0].narrow(0, 0, 3).equal(batch.x[0].narrow(0, 3, 3)));
  EXPECT_TRUE(batch.y.narrow(0, 0, 2).equal(batch.y.narrow(0, 6, 2)));
  EXPECT_FALSE(batch.x[0][0].equal(batch.x[0][1]));
  EXPECT_EQ(everything("{train: 3, distinct: 3}"), everything("{train: 3}"));
}

TEST(Synthetic, DependsOnItsOwnSeedAndNotOnTheRuns) {
  DatasetRequest other = kRequest;
  other.seed = 99;
  EXPECT_EQ(everything("{}"), everything("{}", Split::Train, other));
  EXPECT_NE(everything("{}").x, everything("{seed: 1}").x);
  EXPECT_NE(everything("{train: 256}").x, everything("{}", Split::Test).x);
}

TEST(Synthetic, HasGaussianInputsAndAllClasses) {
  const Everything data = everything("{train: 4000}");
  double sum = 0, squares = 0;
  for (const float x : data.x) {
    sum += x;
    squares += x * x;
  }
  const auto count = static_cast<double>(data.x.size());
  EXPECT_NEAR(sum / count, 0, tolerance::mean_of(count, 1));
  EXPECT_NEAR(squares / count, 1, tolerance::mean_of(count, 2));
  EXPECT_EQ(std::set(data.y.begin(), data.y.end()), (std::set<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(Synthetic, NoiseReplacesThatShareOfTheTrainingLabelsOnly) {
  const Everything clean = everything("{train: 4000}");
  const Everything noisy = everything("{train: 4000, noise: 0.25}");
  EXPECT_EQ(clean.x, noisy.x);
  double changed = 0;
  for (std::size_t i = 0; i < clean.y.size(); ++i) changed += clean.y[i] != noisy.y[i];
  // A drawn class is the old one with probability 1/5.
  EXPECT_NEAR(changed / 4000, 0.25 * 4 / 5, tolerance::share_of(4000, 0.2));
  EXPECT_EQ(everything("{noise: 1}", Split::Test), everything("{}", Split::Test));
}

TEST(Synthetic, MoreSamplesBeginWithTheSameOnes) {
  const Everything few = everything("{train: 8}"), many = everything("{train: 16}");
  EXPECT_TRUE(std::equal(few.x.begin(), few.x.end(), many.x.begin()));
  EXPECT_TRUE(std::equal(few.y.begin(), few.y.end(), many.y.begin()));
}

TEST(Synthetic, RefusesWhatCannotBeMade) {
  EXPECT_TRUE(contains(error_of([] { everything("{}", Split::Train, {}); }, ErrorKind::Experiment),
                       "dataset.classes"));
  EXPECT_TRUE(contains(
      error_of([] { everything("{shape: [100000, 100000]}"); }, ErrorKind::Experiment), "fewer"));
  EXPECT_NE(error_of([] { everything("{noise: 1.5}"); }, ErrorKind::Experiment), "");
}

/// What a model that reads 6 of 20 tokens is given.
Batch tokens(Task task, std::int64_t classes) {
  const auto data = make_dataset("synthetic", "{train: 300, test: 4}");
  data->open(
      {.model_input = {6}, .model_classes = classes, .model_vocabulary = 20, .model_task = task});
  EXPECT_EQ(data->vocabulary(), 20);
  EXPECT_EQ(data->task(), task);
  return data->batch(Split::Train, first_indices(300), nullptr);
}

TEST(SyntheticTokens, AreWordsWithOneClassATextWhereAModelClassifies) {
  const Batch batch = tokens(Task::Classify, 3);
  EXPECT_EQ(batch.x[0].sizes().vec(), (std::vector<std::int64_t>{300, 6}));
  EXPECT_EQ(batch.y.sizes().vec(), (std::vector<std::int64_t>{300}));
  const auto x = values_of<std::int64_t>(batch.x[0]), y = values_of<std::int64_t>(batch.y);
  EXPECT_EQ(std::set(x.begin(), x.end()).size(), 16u);
  EXPECT_EQ(*std::ranges::min_element(x), 4) << "the first are padding and marks";
  EXPECT_EQ(std::set(y.begin(), y.end()), (std::set<std::int64_t>{0, 1, 2}));
}

TEST(SyntheticTokens, FollowFromTheOneBeforeWhereAModelContinues) {
  const Batch batch = tokens(Task::Continue, 20);
  const auto x = values_of<std::int64_t>(batch.x[0]), y = values_of<std::int64_t>(batch.y);
  int same = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 6 != 5) {
      EXPECT_EQ(y[i], x[i + 1]);
    }
    for (std::size_t j = 0; j < i; ++j)
      if (x[j] == x[i]) {
        same += y[j] == y[i] ? 1 : 0;
        break;
      }
  }
  EXPECT_GT(same, 1300) << "of 1,784 that were seen before";
  EXPECT_LT(same, 1784);
}

TEST(SyntheticTokens, HaveATargetMadeOfTheSourceWhereAModelTranslates) {
  const Batch batch = tokens(Task::Translate, 20);
  ASSERT_EQ(batch.x.size(), 2u);
  const auto x = values_of<std::int64_t>(batch.x[0]), so_far = values_of<std::int64_t>(batch.x[1]),
             y = values_of<std::int64_t>(batch.y);
  std::vector<std::int64_t> word(20, -1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(so_far[i], i % 6 == 0 ? 2 : y[i - 1]);
    if (i % 6 == 5) {
      EXPECT_EQ(y[i], 3);
      continue;
    }
    std::int64_t& known = word[static_cast<std::size_t>(x[i])];
    if (known < 0) known = y[i];
    EXPECT_EQ(y[i], known);
  }
}

}  // namespace
}  // namespace pipewright
