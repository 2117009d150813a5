// SPDX-License-Identifier: Apache-2.0
// Evaluations while the pipeline is full: the training does not notice, and what they find is what
// a training finds that ends there. tests/e2e/evaluations_test.py has every scheme and execution.
#include "core/training/evaluations_within.h"

#include <gtest/gtest.h>

#include "core/training/trainer.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// A finished training of so many mini-batches, of which an epoch has six.
struct Steps {
  Steps(int steps, const std::string& changes)
      : laboratory(concat("{train.drain: never, train.epochs: 0, train.steps: ", steps, ", ",
                          changes, "}")),
        trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr) {
    trainer.collect_losses(losses);
    trainer.train();
  }
  Team alone;
  Laboratory laboratory;
  std::vector<std::vector<double>> losses;
  Trainer trainer;
};

constexpr const char* kEvery = ", train.evaluate: {every: 3, unit: minibatch}";

TEST(EvaluationsWithin, ChangeNoBitAndAreThoseOfATrainingThatEndsThere) {
  for (const std::string scheme :
       {"scheme: {name: pipedream}, pipeline.stages: 4",
        "scheme: {name: spectrain}, pipeline.stages: 3",
        "scheme: {name: gpipe}, pipeline.stages: 2, pipeline.microbatches: 2",
        "scheme: {name: pipedream}, pipeline.stages: 2, pipeline.replicas: 2",
        "scheme: {name: delayed_sgd, delay: 2}, pipeline.stages: 1"}) {
    const Steps plain(10, scheme);
    for (const char* execution : {"serial", "threads"}) {
      const Steps run(10, concat(scheme, std::string(kEvery),
                                 ", pipeline.execution: ", std::string(execution)));
      EXPECT_EQ(difference(plain.trainer.stages(), run.trainer.stages()), "") << scheme;
      EXPECT_EQ(plain.losses, run.losses) << scheme;
      ASSERT_EQ(run.trainer.evaluations().size(), 4u);
      for (const EvaluationRow& row : run.trainer.evaluations()) {
        const Steps until(static_cast<int>(row.minibatches), scheme);
        EXPECT_EQ(row.test_loss, until.trainer.epochs().back().test_loss)
            << scheme << " " << execution << " after " << row.minibatches;
        EXPECT_EQ(row.samples, 8. * static_cast<double>(row.minibatches));
      }
    }
  }
}

TEST(EvaluationsWithin, AreThoseOfThatMomentsBatchNorm) {
  const std::string changes =
      concat("scheme: {name: pipedream}, pipeline.stages: 3, ", std::string(kSmallConvolutions));
  const Steps run(6, changes + kEvery);
  const Steps until(3, changes);
  EXPECT_EQ(run.trainer.evaluations().at(0).test_loss, until.trainer.epochs().back().test_loss);
}

}  // namespace
}  // namespace pipewright::test
