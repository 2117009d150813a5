// SPDX-License-Identifier: Apache-2.0
// Epochs, evaluations and their means, as a run reports them.
#include "core/training/trainer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>

#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// A finished training without a run folder.
struct Trained {
  explicit Trained(const std::string& changes)
      : laboratory(changes), trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr) {
    trainer.collect_losses(losses);
    trainer.train();
  }
  Team alone;
  Laboratory laboratory;
  std::vector<std::vector<double>> losses;  ///< of each mini-batch
  Trainer trainer;
};

std::vector<bool> evaluated(const Trained& run) {
  std::vector<bool> all;
  for (const EpochRow& row : run.trainer.epochs()) all.push_back(!std::isnan(row.test_loss));
  return all;
}

TEST(Trainer, ReportsEveryEpochAndStep) {
  const Trained run("{train.epochs: 3, scheme: {name: pipedream}}");
  ASSERT_EQ(run.trainer.epochs().size(), 3u);
  ASSERT_EQ(run.losses.size(), 18u);
  EXPECT_LT(run.trainer.epochs()[2].train_loss, run.trainer.epochs()[0].train_loss) << "it learns";
}

/// Makes its samples when it is told to, or else at its first batch.
class Lazy final : public Dataset {
 public:
  void open(const DatasetRequest&) override {}
  std::int64_t size(Split) const override { return 16; }
  std::vector<std::int64_t> sample_shape() const override { return {6}; }
  std::int64_t classes() const override { return 2; }
  void prepare() const override { prepared = true; }
  Batch batch(Split, std::span<const std::int64_t> of, const RandomStream*) const override {
    EXPECT_TRUE(prepared) << "the clock has started";
    const auto samples = static_cast<std::int64_t>(of.size());
    return {{at::ones({samples, 6})}, at::zeros({samples}, at::kLong)};
  }
  mutable std::atomic<bool> prepared = false;
};

TEST(Trainer, LetsADataSetMakeItsSamplesBeforeItTakesAny) {
  Laboratory laboratory("{train.epochs: 1}");
  const auto lazy = std::make_shared<Lazy>();
  laboratory.dataset = lazy;
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  EXPECT_FALSE(lazy->prepared);
  trainer.train();
  EXPECT_TRUE(lazy->prepared);
}

TEST(Trainer, WeightsASmallerLastMiniBatchByItsSamples) {
  const Trained run("{dataset.train: 19, loader.drop_last: false}");
  const auto& losses = run.losses;
  ASSERT_EQ(losses.size(), 3u);
  const double mean = (8 * losses[0][0] + 8 * losses[1][0] + 3 * losses[2][0]) / 19;
  EXPECT_NEAR(run.trainer.epochs()[0].train_loss, mean, kFloat64Relative);
}

TEST(Trainer, EvaluatesTheMeanOverAllTestSamples) {
  Trained run("{dataset.test: 20, pipeline.stages: 1, train.precision: float64}");
  const Plan& plan = run.laboratory.plan();
  const Batch test = plan.dataset->batch(Split::Test, plan.test, nullptr);
  std::vector<at::Tensor> w;
  for (const auto& [name, tensor] : run.trainer.stages()[0]->named_parameters())
    w.push_back(tensor);
  at::Tensor z = test.x[0].to(at::kDouble);
  for (std::size_t i = 0; i < w.size(); i += 2) {
    z = at::linear(z, w[i], w[i + 1]);
    if (i + 2 < w.size()) z = z.relu();
  }
  const EpochRow& row = run.trainer.epochs()[0];
  EXPECT_NEAR(row.test_loss, at::cross_entropy_loss(z, test.y).item<double>(), kFloat64Relative);
  EXPECT_DOUBLE_EQ(row.test_accuracy, z.argmax(1).eq(test.y).sum().item<double>() / 20);
}

TEST(Trainer, EvaluatesEverySoManyEpochsAndAtTheEnd) {
  EXPECT_EQ(evaluated(Trained("{train.epochs: 5, train.evaluate_every: 2}")),
            (std::vector<bool>{false, true, false, true, true}));
  EXPECT_EQ(evaluated(Trained("{train.epochs: 3}")), (std::vector<bool>{true, true, true}));
}

TEST(Trainer, WithoutDrainingEvaluatesAtTheEndOnly) {
  EXPECT_EQ(evaluated(Trained("{train.epochs: 3, train.drain: never}")),
            (std::vector<bool>{false, false, true}));
}

TEST(Trainer, DrainsTheSameAsNotWhereThePipeIsEmptyAnyway) {
  const Trained epoch("{train.epochs: 3, scheme: {name: gpipe}}");
  const Trained never("{train.epochs: 3, scheme: {name: gpipe}, train.drain: never}");
  EXPECT_EQ(difference(epoch.trainer.stages(), never.trainer.stages()), "");
  EXPECT_EQ(epoch.losses, never.losses);
}

TEST(Trainer, DrainsBetweenEpochsOfAnAsynchronousScheme) {
  const Trained epoch("{train.epochs: 2, scheme: {name: pipedream}}");
  const Trained never("{train.epochs: 2, scheme: {name: pipedream}, train.drain: never}");
  EXPECT_EQ(epoch.losses[5], never.losses[5]) << "the first epoch is the same";
  EXPECT_NE(difference(epoch.trainer.stages(), never.trainer.stages()), "");
}

/// Bit for bit, and every loss, mean and learning rate.
void expect_the_same(const Trained& a, const Trained& b) {
  EXPECT_EQ(difference(a.trainer.stages(), b.trainer.stages()), "");
  EXPECT_EQ(a.losses, b.losses);
  for (std::size_t i = 0; i < a.trainer.epochs().size(); ++i) {
    EXPECT_EQ(a.trainer.epochs()[i].train_loss, b.trainer.epochs()[i].train_loss) << i;
    EXPECT_EQ(a.trainer.epochs()[i].lr, b.trainer.epochs()[i].lr) << i;
  }
}

TEST(Trainer, CutAtCheckpointsSeesTheSameDataMasksAndLearningRates) {
  for (const std::string of :
       {"train.epochs: 3, lr_schedule: {name: poly, per: step}, model: {name: cnn, width: 0.125, "
        "size: 8, channels: 1, classes: 3}",
        "train.epochs: 3, train.drain: never, dataset.train: 45, loader.drop_last: false"})
    for (const char* every : {"1", "4", "7", "8"})
      expect_the_same(
          Trained(concat("{", of, "}")),
          Trained(concat("{", of, ", train.checkpoint: {unit: minibatch, every: ", every, "}}")));
}

TEST(Trainer, DrainsAtCheckpointsWithinAnEpoch) {
  const Trained whole("{scheme: {name: pipedream}}");
  const Trained cut("{scheme: {name: pipedream}, train.checkpoint: {every: 4, unit: minibatch}}");
  EXPECT_EQ(whole.losses[3], cut.losses[3]);
  EXPECT_NE(whole.losses[5], cut.losses[5]);
}

TEST(Trainer, LeavesWeightsAloneAtLearningRate0) {
  for (const char* scheme : {"pipedream", "spectrain", "interlocking"}) {
    const Trained run(concat("{train.epochs: 2, optimizer.lr: 0, scheme: {name: ", scheme, "}}"));
    Laboratory fresh(concat("{scheme: {name: ", scheme, "}}"));
    EXPECT_EQ(difference(run.trainer.stages(), fresh.plan().stages()), "") << scheme;
  }
}

TEST(Trainer, StopsWhereWeightsAreNotFinite) {
  Laboratory laboratory("{optimizer.lr: 1e38, train.epochs: 3}");
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  try {
    trainer.train();
    ADD_FAILURE() << "it came to its end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::NotFinite) << error.what();
  }
}

TEST(Trainer, UsesTheLearningRateOfTheEpochOrStep) {
  const Trained epochs("{train.epochs: 3, lr_schedule: {name: step, size: 1, gamma: 0.5}}");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_DOUBLE_EQ(epochs.trainer.epochs()[i].lr, 0.05 * std::pow(0.5, static_cast<double>(i)));
  const Trained steps("{train.epochs: 3, lr_schedule: {name: linear, per: step}}");
  EXPECT_DOUBLE_EQ(steps.trainer.epochs()[1].lr, 0.05 * (1 - 6.0 / 18));
}

TEST(Trainer, DoesNothingInNoEpochs) {
  const Trained run("{train.epochs: 0}");
  EXPECT_TRUE(run.trainer.epochs().empty());
}

TEST(Trainer, CallsItADeadlockWhenTheExperimentSays) {
  Laboratory laboratory("{pipeline: {stages: 2, execution: threads, timeout: 0.2}}");
  laboratory.plan().training.workers[0].clear();  // and so never sends anything
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  try {
    trainer.train();
    ADD_FAILURE() << "something came";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("none has come for 0.2 s"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace pipewright::test
