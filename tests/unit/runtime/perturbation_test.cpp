// SPDX-License-Identifier: Apache-2.0
// Disturbed trainings: which scheme a delay of gradients is, what a lag of running statistics is,
// and that noise depends on no layout.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "core/training/trainer.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

/// Batch norm and dropout in 8 layers; six mini-batches an epoch, in the order of the data.
constexpr const char* kNet =
    "model: {name: cnn, width: 0.25, size: 8, channels: 1, classes: 3}, pipeline.balance: layers, "
    "dataset.train: 48, dataset.test: 8, loader.shuffle: false";
constexpr const char* kAll =
    "perturb: {gradient_delay: 2, weight_noise: 0.05, stale_batch_norm: 1}";
constexpr const char* kOfMlp = "perturb: {gradient_delay: 2, weight_noise: 0.05}";

using Named = std::vector<std::pair<std::string, at::Tensor>>;

struct Disturbed {
  explicit Disturbed(const std::string& changes)
      : laboratory(concat("{", changes, "}")),
        trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr) {
    trainer.collect_losses(losses);
    trainer.train();
  }
  Named parameters() const {
    Named all;
    for (const auto& stage : trainer.stages())
      for (auto& named : stage->named_parameters()) all.push_back(named);
    return all;
  }

  Team alone;
  Laboratory laboratory;
  std::vector<std::vector<double>> losses;  ///< of each mini-batch
  Trainer trainer;
};

std::string first_other(const Named& a, const Named& b) {
  if (a.size() != b.size()) return "another number of tensors";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || !at::equal(a[i].second, b[i].second)) return a[i].first;
  return "";
}

constexpr const char* kOptimizers[] = {"{name: sgd, lr: 0.02}",
                                       "{name: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.01}",
                                       "{name: adam, lr: 0.002}"};

/// Update i of delayed SGD applies the gradient of mini-batch i at weights of version i − 6. Here
/// update i + 6 applies that gradient, and the weights are what they are there six updates before.
TEST(GradientDelay, OfGpipeIsDelayedSgdSoManyMiniBatchesLater) {
  for (const char* optimizer : kOptimizers)
    for (const int stages : {1, 3})
      for (const int microbatches : {1, 2}) {
        const std::string shape =
            concat(kNet, ", optimizer: ", optimizer, ", pipeline.stages: ", stages,
                   ", pipeline.microbatches: ", microbatches);
        const Disturbed perturbed(
            concat(shape, ", scheme: {name: gpipe}, train.epochs: 2, perturb.gradient_delay: 6"));
        const std::string delayed = concat(
            shape, ", train.drain: never, scheme: {name: delayed_sgd, delay: 6}, train.epochs: ");
        EXPECT_EQ(perturbed.losses, Disturbed(concat(delayed, 2)).losses) << shape;
        EXPECT_EQ(first_other(perturbed.parameters(), Disturbed(concat(delayed, 1)).parameters()),
                  "")
            << shape;
      }
}

TEST(GradientDelay, IsThatOfAnyNumberOfUpdates) {
  for (const int delay : {1, 2, 5}) {
    const Disturbed perturbed(
        concat(kNet, ", scheme: {name: gpipe}, perturb.gradient_delay: ", delay));
    const Disturbed delayed(concat(kNet, ", scheme: {name: delayed_sgd, delay: ", delay,
                                   "}, loader.limit_train: ", 48 - 8 * delay));
    EXPECT_EQ(first_other(perturbed.parameters(), delayed.parameters()), "") << delay;
    EXPECT_TRUE(std::ranges::equal(delayed.losses,
                                   std::span(perturbed.losses).first(delayed.losses.size())))
        << delay;
  }
}

/// Every stage of PipeDream has that many updates more of delay.
TEST(GradientDelay, AddsToTheDelayOfTheScheme) {
  const std::string shape = concat(kNet, ", pipeline.stages: 3, ");
  const Disturbed perturbed(concat(shape,
                                   "scheme: {name: pipedream}, train: {epochs: 2, drain: never}, "
                                   "perturb.gradient_delay: 6"));
  const std::string delayed =
      concat(shape,
             "train.drain: never, scheme: {name: delayed_sgd, delay: [8, 7, 6]}, "
             "train.epochs: ");
  EXPECT_EQ(perturbed.losses, Disturbed(concat(delayed, 2)).losses);
  EXPECT_EQ(first_other(perturbed.parameters(), Disturbed(concat(delayed, 1)).parameters()), "");
}

TEST(GradientDelay, ForgetsNothingWhereThePipelineIsDrained) {
  const std::string training =
      concat(kNet, ", scheme: {name: gpipe}, train.epochs: 2, perturb.gradient_delay: 2");
  const Disturbed whole(concat(training, ", train.drain: never")),
      drained(concat(training, ", train.checkpoint: {every: 2, unit: minibatch}"));
  EXPECT_EQ(difference(whole.trainer.stages(), drained.trainer.stages()), "");
  EXPECT_EQ(whole.losses, drained.losses);
}

TEST(Perturbation, OfNothingIsNoPerturbation) {
  const std::string training = concat(kNet, ", scheme: {name: spectrain}, pipeline.stages: 3");
  const Disturbed plain(training), idle(concat(training,
                                               ", perturb: {gradient_delay: 0, weight_noise: 0, "
                                               "stale_batch_norm: 0}"));
  EXPECT_EQ(difference(plain.trainer.stages(), idle.trainer.stages()), "");
  EXPECT_EQ(plain.losses, idle.losses);
  EXPECT_EQ(plain.trainer.epochs().back().test_loss, idle.trainer.epochs().back().test_loss);
}

TEST(Perturbation, DoesMatter) {
  const std::string training = concat(kNet, ", scheme: {name: gpipe}");
  const Disturbed plain(training);
  for (const char* option : {"gradient_delay: 1", "weight_noise: 0.01"}) {
    const Disturbed other(concat(training, ", perturb: {", option, "}"));
    EXPECT_NE(first_other(plain.parameters(), other.parameters()), "") << option;
  }
}

/// Calls `with` with every scheme's options, and the shape that it needs.
template <class With>
void for_every_scheme(const With& with) {
  for (const SchemeCase& scheme : every_scheme()) {
    const bool one_stage = scheme.name == "data_parallel";
    with(concat("scheme: ", scheme_text(scheme), ", pipeline.microbatches: 4, pipeline.stages: ",
                one_stage ? 1 : 4, ", pipeline.replicas: ", one_stage ? 2 : 1));
  }
}

TEST(Perturbation, GivesTheSameBitsInEveryExecutionOfEveryScheme) {
  for_every_scheme([](const std::string& scheme) {
    Laboratory laboratory(concat("{", scheme, ", dataset.train: 40, ", kOfMlp, "}"));
    expect_same_bits(laboratory, scheme);
  });
}

TEST(Perturbation, GivesTheSameBitsInEveryExecutionOfOtherShapes) {
  for (const char* shape :
       {"scheme: {name: gpipe}, pipeline.microbatches: 2, pipeline.recompute: always",
        "scheme: {name: spectrain, version: 2}, pipeline.replicas: 2",
        "scheme: {name: pipedream}, train.precision: bfloat16",
        "scheme: {name: zb_h1}, pipeline.microbatches: 4, pipeline.memory_format: channels_last",
        "scheme: {name: pipemare, annealing: 8, warmup: 4}, pipeline.batch_norm: deferred"}) {
    Laboratory laboratory(concat("{", kNet, ", pipeline.stages: 3, ", kAll, ", ", shape, "}"));
    expect_same_bits(laboratory, shape);
  }
}

TEST(WeightNoise, LeavesStoredWeightsAloneInEveryScheme) {
  for_every_scheme([](const std::string& scheme) {
    const std::string training = concat(scheme, ", dataset.train: 40, ", kOfMlp);
    const Disturbed before(concat(training, ", train.epochs: 0")),
        after(concat(training, ", optimizer.lr: 0"));
    EXPECT_EQ(first_other(before.parameters(), after.parameters()), "") << scheme;
  });
}

TEST(WeightNoise, DependsOnNoCutAndNoRecomputation) {
  const std::string training = concat(
      kNet, ", scheme: {name: gpipe}, pipeline.microbatches: 2, perturb.weight_noise: 0.1, ");
  const Disturbed one(concat(training, "pipeline.stages: 1"));
  for (const char* other : {"pipeline.stages: 2", "pipeline.stages: 8",
                            "pipeline: {stages: 3, microbatches: 2, recompute: always}"}) {
    const Disturbed trained(concat(training, other));
    EXPECT_EQ(difference(one.trainer.stages(), trained.trainer.stages()), "") << other;
    EXPECT_EQ(one.losses, trained.losses) << other;
  }
}

/// The loss of an evaluation of a plan of eight test samples with the parameters of one training
/// and the buffers of another; null: those that a training begins with.
double evaluated(Laboratory& laboratory, const Disturbed& parameters, const Disturbed* buffers) {
  const Stages stages = laboratory.plan().stages();
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const Named own = stages[k]->named_parameters(), statistics = stages[k]->named_buffers();
    const Stage& trained = *parameters.trainer.stages()[k];
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i].second.copy_(trained.named_parameters()[i].second);
    for (std::size_t i = 0; buffers != nullptr && i < statistics.size(); ++i)
      statistics[i].second.copy_(buffers->trainer.stages()[k]->named_buffers()[i].second);
  }
  Loader loader = laboratory.plan().evaluation_loader();
  return execute(laboratory.plan().evaluation, stages,
                 {.batches = loader, .lr = [](int) { return 0.0; }})
      .losses.at(0)
      .at(0);
}

/// The first four mini-batches of an epoch are those of a training that has no more.
TEST(StaleBatchNorm, EvaluatesWithStatisticsFromBeforeTheLastMiniBatches) {
  for (const char* scheme :
       {"scheme: {name: gpipe}, pipeline.microbatches: 2", "scheme: {name: pipedream}",
        "scheme: {name: spectrain}, pipeline.batch_norm: deferred, pipeline.microbatches: 2",
        "scheme: {name: one_f_one_b}, pipeline.microbatches: 2, pipeline.recompute: always"}) {
    const std::string training = concat(kNet, ", pipeline.stages: 3, ", scheme);
    const Disturbed stale(concat(training, ", perturb.stale_batch_norm: 2")), plain(training),
        shorter(concat(training, ", loader.limit_train: 32"));
    EXPECT_EQ(difference(stale.trainer.stages(), plain.trainer.stages()), "")
        << scheme << ": the training is not disturbed, and the newest statistics are saved";
    Laboratory laboratory(concat("{", training, "}"));
    const double loss = stale.trainer.epochs().back().test_loss;
    EXPECT_EQ(loss, evaluated(laboratory, plain, &shorter)) << scheme;
    EXPECT_NE(loss, evaluated(laboratory, plain, &plain)) << scheme;
  }
}

TEST(StaleBatchNorm, HasTheFirstStatisticsWhileThereAreNoOlderOnes) {
  const std::string training = concat(kNet, ", scheme: {name: gpipe}, pipeline.stages: 3");
  const Disturbed stale(concat(training, ", train.epochs: 2, perturb.stale_batch_norm: 6")),
      first(training), second(concat(training, ", train.epochs: 2"));
  Laboratory laboratory(concat("{", training, "}"));
  EXPECT_EQ(stale.trainer.epochs()[0].test_loss, evaluated(laboratory, first, nullptr));
  EXPECT_EQ(stale.trainer.epochs()[1].test_loss, evaluated(laboratory, second, &first));
}

}  // namespace
}  // namespace pipewright::test
