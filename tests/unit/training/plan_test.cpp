// SPDX-License-Identifier: Apache-2.0
// What a plan sets apart, cuts and refuses.
#include "core/training/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

std::string plan_refusal(const std::string& changes) {
  Laboratory laboratory(changes);
  try {
    laboratory.plan();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.message();
  }
  return "nothing is refused";
}

void expect_refused(const std::string& changes, const std::string& part) {
  EXPECT_NE(plan_refusal(changes).find(part), std::string::npos) << plan_refusal(changes);
}

TEST(Plan, HoldsOutValidationSamplesThatAreNotTrainedOn) {
  Laboratory laboratory("{loader.validation: 10}");
  const Plan& plan = laboratory.plan();
  EXPECT_EQ(plan.test.size(), 10u);
  EXPECT_EQ(plan.train.size(), 38u);
  EXPECT_EQ(static_cast<int>(plan.test_split), static_cast<int>(Split::Train));
  std::set<std::int64_t> all(plan.train.begin(), plan.train.end());
  all.insert(plan.test.begin(), plan.test.end());
  EXPECT_EQ(all.size(), 48u);
}

TEST(Plan, HoldsOutTheSameSamplesWhateverTheSeed) {
  Laboratory a("{loader.validation: 10, train.seed: 1}"),
      b("{loader.validation: 10, train.seed: 2}");
  EXPECT_EQ(a.plan().test, b.plan().test);
}

TEST(Plan, LimitsSamples) {
  Laboratory laboratory("{loader.limit_train: 20, loader.limit_test: 5}");
  EXPECT_EQ(laboratory.plan().train.size(), 20u);
  EXPECT_EQ(laboratory.plan().test.size(), 5u);
  EXPECT_EQ(laboratory.plan().minibatches, 2);
}

TEST(Plan, RecomputesWhatItsExperimentSays) {
  for (const auto& [recompute, times] :
       {std::pair{"never", 0}, std::pair{"always", 4}, std::pair{"except_last", 3}}) {
    Laboratory laboratory(
        concat("{scheme: {name: gpipe}, pipeline.microbatches: 4, dataset.train: ",
               "8, pipeline.recompute: ", recompute, "}"));
    const auto& actions = laboratory.plan().training.schedule.workers[1];
    EXPECT_EQ(std::ranges::count(actions, ActionKind::Recompute, &Action::kind), times);
    EXPECT_EQ(laboratory.plan().evaluation.schedule.workers[1].size(), 3U) << "20 samples by 8";
  }
}

/// `check` and `run` read an experiment and make its plan.
TEST(Plan, ProvesALongTrainingByShortSchedules) {
  const std::int64_t before = proved_actions();
  Laboratory laboratory("{dataset.train: 8000}");
  EXPECT_EQ(proved_actions(), before) << "an experiment is read without a proof";
  const std::int64_t all = laboratory.plan().training.actions;
  EXPECT_GT(all, 5000);
  EXPECT_LT(proved_actions() - before, all / 10);
}

TEST(Plan, ProvesAScheduleThatIsKeptWholeOnce) {
  Laboratory laboratory("{dataset.train: 400, output.trace: true}");
  const std::int64_t before = proved_actions();
  const Plan& plan = laboratory.plan();
  EXPECT_EQ(proved_actions() - before, plan.training.actions + plan.evaluation.actions);
}

/// 100 + 10 samples, the first class before the second.
class Sorted final : public Dataset {
 public:
  void open(const DatasetRequest&) override {}
  std::int64_t size(Split split) const override { return split == Split::Train ? 100 : 10; }
  std::vector<std::int64_t> sample_shape() const override { return {6}; }
  std::int64_t classes() const override { return 2; }
  bool sorted_by_class() const override { return true; }
  Batch batch(Split, std::span<const std::int64_t>, const RandomStream*) const override {
    return {};
  }
};

TEST(Plan, LimitsSamplesThatComeClassByClassAtEqualDistances) {
  Laboratory laboratory("{loader.limit_train: 20, loader.limit_test: 4}");
  laboratory.dataset = std::make_shared<Sorted>();
  const Plan& plan = laboratory.plan();
  ASSERT_EQ(plan.train.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(plan.train[i], static_cast<std::int64_t>(5 * i));
  EXPECT_EQ(plan.test, (std::vector<std::int64_t>{0, 2, 5, 7}));
}

std::vector<at::Tensor> targets_of(const Plan& plan, int epoch) {
  Loader loader = plan.training_loader(epoch, 1);
  std::vector<at::Tensor> all;
  for (int m = 0; m < plan.minibatches; ++m)
    all.push_back(loader.targets(m, loader.share(m, 0, 0), at::kCPU));
  return all;
}

TEST(Plan, KeepsTheFirstEpochsOrderWhereItIsNotReshuffled) {
  for (const bool reshuffle : {true, false}) {
    Laboratory laboratory(reshuffle ? "{}" : "{loader.reshuffle: false}");
    const Plan& plan = laboratory.plan();
    const auto first = targets_of(plan, 0), third = targets_of(plan, 2);
    bool same = true;
    for (std::size_t m = 0; m < first.size(); ++m) same = same && first[m].equal(third[m]);
    EXPECT_EQ(same, !reshuffle);
  }
}

TEST(Plan, RefusesToSortByLengthWhatHasNone) {
  expect_refused("{loader.bucket: 4}", "loader.bucket sorts texts by length");
}

TEST(Plan, SchedulesOneEpochOrAllOfThem) {
  Laboratory each("{train.epochs: 3}"), never("{train.epochs: 3, train.drain: never}");
  EXPECT_EQ(each.plan().training.schedule.shape.minibatches, 6);
  EXPECT_EQ(never.plan().training.schedule.shape.minibatches, 18);
}

TEST(Plan, RefusesDataThatDoNotFitTheModel) {
  expect_refused("{dataset.shape: [7]}", "the model takes samples of 6, the data set has 7");
  expect_refused("{dataset.classes: 4}", "the data set has 4 classes, the model only 3 outputs");
}

TEST(Plan, RefusesAnEpochWithoutAMiniBatch) {
  expect_refused("{dataset.train: 7}", "an epoch has no mini-batch: there are 7 training samples");
}

TEST(Plan, RefusesALastMiniBatchSmallerThanItsMicroBatches) {
  expect_refused("{dataset.train: 17, loader.drop_last: false, pipeline.microbatches: 2}",
                 "for 2 micro-batches");
}

TEST(Plan, RefusesToHoldOutEverything) {
  expect_refused("{loader.validation: 48}", "none are left to train on");
}

TEST(Plan, StartsEveryReplicaWithTheSameWeights) {
  Laboratory laboratory("{pipeline.replicas: 2, pipeline.stages: 2}");
  const Stages stages = laboratory.plan().stages();
  ASSERT_EQ(stages.size(), 4u);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(at::equal(stages[i]->weights().latest(), stages[i + 2]->weights().latest()));
}

TEST(Plan, StartsWithTheSameWeightsWhateverTheCut) {
  Laboratory one("{pipeline.stages: 1}"), four("{pipeline.stages: 4}"),
      two("{pipeline.stages: 2, pipeline.balance: [3, 1]}");
  const Stages whole = one.plan().stages();
  EXPECT_EQ(difference(whole, four.plan().stages()), "");
  EXPECT_EQ(difference(whole, two.plan().stages()), "");
}

TEST(Plan, GivesHeadsToTheStagesThatNeedOne) {
  Laboratory laboratory("{scheme: {name: interlocking, width: 1}}");
  const Plan& plan = laboratory.plan();
  EXPECT_EQ(plan.auxiliary, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(plan.head_of(3), nullptr);
  EXPECT_EQ(plan.head_of(1)->name(), "heads.1");
}

TEST(Plan, DeclaresTheStateThatItsStagesHave) {
  Laboratory laboratory(
      "{model: {name: cnn, channels: 1, size: 8, width: 0.25}, pipeline.stages: 3, "
      "scheme: {name: interlocking}}");
  const Plan& plan = laboratory.plan();
  const auto layers = plan.experiment->stage_layers();
  const auto stages = plan.stages();
  bool buffers = false;
  for (int stage = 0; stage < 3; ++stage) {
    NamedShapes held;
    for (const auto& [name, tensor] : stages[static_cast<std::size_t>(stage)]->named_state()) {
      held.emplace_back(name, tensor.sizes().vec());
      buffers = buffers || name.ends_with("running_mean");
    }
    EXPECT_EQ(state_shapes(layers[static_cast<std::size_t>(stage)], plan.head_of(stage)), held);
  }
  EXPECT_TRUE(buffers);
}

TEST(Plan, LoadsEpochsThatDifferInOrderOnly) {
  Laboratory laboratory;
  Loader first = laboratory.plan().training_loader(0, 1),
         later = laboratory.plan().training_loader(0, 2);
  EXPECT_EQ(later.minibatches(), 12);
  auto at_of = [](Loader& loader, int minibatch) {
    return loader.inputs(minibatch, loader.share(minibatch, 0, 0), at::kCPU)[0];
  };
  EXPECT_TRUE(at::equal(at_of(first, 2), at_of(later, 2)));
  Loader second = laboratory.plan().training_loader(1, 1);
  EXPECT_TRUE(at::equal(at_of(second, 2), at_of(later, 8)));
  EXPECT_FALSE(at::equal(at_of(first, 2), at_of(second, 2)));
}

TEST(Plan, LoadsTheRestOfAnEpoch) {
  Laboratory laboratory;
  Loader whole = laboratory.plan().training_loader(0, 2),
         rest = laboratory.plan().training_loader(0, 2, 4);
  EXPECT_EQ(rest.minibatches(), 8);
  for (const int minibatch : {0, 1, 2, 7}) {
    const Share share = rest.share(minibatch, 0, 0);
    EXPECT_TRUE(at::equal(rest.inputs(minibatch, share, at::kCPU)[0],
                          whole.inputs(minibatch + 4, share, at::kCPU)[0]));
    EXPECT_TRUE(at::equal(rest.targets(minibatch, share, at::kCPU),
                          whole.targets(minibatch + 4, share, at::kCPU)));
  }
}

}  // namespace
}  // namespace pipewright::test
