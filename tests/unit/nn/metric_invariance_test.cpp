// SPDX-License-Identifier: Apache-2.0
// What must not matter to a metric does not, for every metric that is registered: the order of the
// samples, and what their classes are called.
#include <gtest/gtest.h>

#include <cmath>

#include "core/nn/metric.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

constexpr std::int64_t kSamples = 40;

double value_of(const std::string& name, const at::Tensor& output, const at::Tensor& target) {
  const auto metric = make_metric(name);
  const at::Tensor sums = metric->sums(output, target);
  return metric->value({sums.const_data_ptr<double>(), metric->size()});
}

/// Scores without ties, and targets, of so many classes.
struct Answers {
  explicit Answers(std::int64_t classes)
      : scores(random({kSamples, classes}, 3)),
        targets(at::arange(kSamples, at::kLong).mul(7).remainder(classes)) {}
  at::Tensor scores, targets;
};

/// The metrics of classes.
std::vector<std::string> names() {
  std::vector<std::string> names = Registry<Metric>::instance().names();
  std::erase_if(names,
                [](const std::string& name) { return !make_metric(name)->fits(Task::Classify); });
  return names;
}

TEST(MetricInvariance, HasTheOrderOfSamplesAsNoPart) {
  const at::Tensor order = at::arange(kSamples, at::kLong).mul(11).remainder(kSamples);
  for (const std::string& name : names()) {
    const Answers answers(name == "matthews" ? 2 : 8);
    const double plain = value_of(name, answers.scores, answers.targets);
    EXPECT_TRUE(std::isfinite(plain)) << name;
    // Counts are exact; perplexity is e to the mean of a sum in another order.
    EXPECT_NEAR(
        value_of(name, answers.scores.index({order}), answers.targets.index({order})), plain,
        name == "perplexity" ? 2 * tolerance::rounded64(kSamples) * plain * std::log(plain) : 0)
        << name;
  }
}

TEST(MetricInvariance, HasTheOrderOfRealTargetsAsNoPart) {
  const at::Tensor order = at::arange(kSamples, at::kLong).mul(11).remainder(kSamples);
  const at::Tensor output = random({kSamples, 3}, 5), target = random({kSamples, 3}, 6);
  const double plain = value_of("mae", output, target);
  EXPECT_NEAR(value_of("mae", output.index({order}), target.index({order})), plain,
              2 * tolerance::rounded64(3 * kSamples) * plain);
  EXPECT_NEAR(value_of("mae", output.sub(target), at::zeros_like(target)), plain,
              2 * tolerance::rounded64(3 * kSamples) * plain)
      << "what is taken from both";
}

TEST(MetricInvariance, HasNamesOfClassesAsNoPart) {
  for (const std::string& name : names()) {
    const std::int64_t classes = name == "matthews" ? 2 : 8;
    const Answers answers(classes);
    // Class c becomes class `called[c]`; with two classes they change places.
    const at::Tensor called = at::arange(classes, at::kLong).mul(3).add(1).remainder(classes);
    at::Tensor scores = at::empty_like(answers.scores);
    scores.index_copy_(1, called, answers.scores);
    const double plain = value_of(name, answers.scores, answers.targets);
    EXPECT_NEAR(value_of(name, scores, called.index({answers.targets})), plain,
                name == "perplexity" ? tolerance::kHundredOperations * plain : 0)
        << name;
  }
}

TEST(MetricInvariance, HasWhatIsAddedToAllScoresOfASampleAsNoPart) {
  const at::Tensor added = at::arange(kSamples, at::kDouble).sub(20).mul(0.25).unsqueeze(1);
  for (const std::string& name : names()) {
    const Answers answers(name == "matthews" ? 2 : 8);
    const double plain = value_of(name, answers.scores, answers.targets);
    // Scores up to 5 in magnitude and sums with them are off by 2^-51 at most, the mean by as much.
    EXPECT_NEAR(value_of(name, answers.scores.add(added), answers.targets), plain,
                name == "perplexity" ? 10 * tolerance::kHundredOperations * plain : 0)
        << name;
  }
}

TEST(MetricInvariance, ATargetThatDoesNotCountIsAsOneThatIsNotThere) {
  for (const std::string& name : names()) {
    if (name == "matthews") continue;  // of classified samples, which all count
    const Answers answers(8);
    const at::Tensor half = answers.targets.view({2, kSamples / 2}).clone();
    half[1].narrow(0, 5, 15).fill_(-100);
    const at::Tensor counted = answers.targets.narrow(0, 0, kSamples / 2 + 5);
    EXPECT_NEAR(value_of(name, answers.scores.view({2, kSamples / 2, 8}), half),
                value_of(name, answers.scores.narrow(0, 0, counted.size(0)), counted),
                name == "perplexity" ? 10 * tolerance::kHundredOperations : 0)
        << name;
  }
}

}  // namespace
}  // namespace pipewright::test
