// SPDX-License-Identifier: Apache-2.0
// Every scheme in both executions: the same bits, and no more copies of the weights than counted.
#include <gtest/gtest.h>

#include <utility>

#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// Lookahead and geometric velocities are SGD's.
std::string changes_for(const SchemeCase& scheme, int microbatches) {
  const bool one_stage = scheme.name == "data_parallel";
  return concat("{scheme: ", scheme_text(scheme), ", pipeline.stages: ", one_stage ? 1 : 4,
                ", pipeline.replicas: ", one_stage ? 2 : 1,
                ", pipeline.microbatches: ", microbatches, ", dataset.train: 40}");
}

TEST(Executions, GiveTheSameBitsForEverySchemeOnAMultilayerPerceptron) {
  for (const SchemeCase& scheme : every_scheme()) {
    Laboratory laboratory(changes_for(scheme, 4));
    expect_same_bits(laboratory, scheme.name + scheme.options);
  }
}

TEST(Executions, GiveTheSameBitsForEverySchemeWithBatchNormAndDropout) {
  for (const SchemeCase& scheme : first_of_each_scheme()) {
    Laboratory laboratory(
        concat(changes_for(scheme, 4).substr(0, changes_for(scheme, 4).size() - 1),
               ", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}}"));
    expect_same_bits(laboratory, scheme.name);
  }
}

/// Gradients of micro-batches add up in the same order in all schemes that flush, whether they
/// split backwards or interleave stages.
void expect_bits_of_1f1b(int replicas, const char* model) {
  const auto trained = [&](const char* scheme) {
    Laboratory laboratory(concat("{scheme: ", scheme, ", pipeline.replicas: ", replicas,
                                 ", pipeline.microbatches: 4, dataset.train: 40", model, "}"));
    Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    return stages;
  };
  const Stages plain = trained("{name: one_f_one_b}");
  for (const char* scheme :
       {"{name: interleaved}", "{name: interleaved, chunks: 4}", "{name: zb_h1}",
        "{name: zb_h1, chunks: 2}", "{name: zb_h2}", "{name: zb_v}", "{name: v_half}",
        "{name: v_min}", "{name: hanayo}", "{name: hanayo, waves: 2}", "{name: dualpipe_v}"})
    EXPECT_EQ(difference(plain, trained(scheme)), "") << scheme << model;
}

TEST(Executions, LearnTheSameBitsWhetherBackwardsAreSplitAndStagesInterleaved) {
  for (const int replicas : {1, 2}) expect_bits_of_1f1b(replicas, "");
}

TEST(Executions, LearnTheSameBitsSplitOrInterleavedWithConvolutionsAndAttention) {
  for (const char* model :
       {", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}",
        ", model: {name: encoder, layers: 4, width: 8, heads: 2, feed_forward: 12, tokens: 5}, "
        "pipeline.balance: layers"})
    for (const int replicas : {1, 2}) expect_bits_of_1f1b(replicas, model);
}

TEST(Executions, GiveTheSameBitsWhereReplicasShareWorkers) {
  for (const SchemeCase& scheme : schemes_that_share_workers())
    for (const int replicas : {2, 4}) {
      Laboratory laboratory(concat("{scheme: ", scheme_text(scheme), ", pipeline.replicas: ",
                                   replicas, ", pipeline.microbatches: 2, dataset.train: 40}"));
      expect_same_bits(laboratory, concat(scheme.name, ", ", replicas, " replicas"));
    }
}

/// Two replicas of 1F1B with as many micro-batches.
TEST(Executions, LearnTheBitsOfDataParallelismWhereReplicasShareWorkers) {
  for (const char* model :
       {"", ", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}"})
    for (const int microbatches : {1, 2, 4}) {
      const auto trained = [&](const std::string& scheme) {
        Laboratory laboratory(concat("{scheme: ", scheme, ", pipeline.replicas: 2, ",
                                     "pipeline.microbatches: ", microbatches, ", dataset.train: 40",
                                     model, "}"));
        Stages stages = laboratory.plan().stages();
        train(laboratory.plan(), stages, Execution::Threads);
        return stages;
      };
      const Stages plain = trained("{name: one_f_one_b}");
      for (const char* scheme : {"{name: chimera}", "{name: dualpipe}"})
        EXPECT_EQ(difference(plain, trained(scheme)), "")
            << scheme << ", " << microbatches << " micro-batches" << model;
    }
}

TEST(Executions, GiveTheSameBitsWhereStagesShareWorkers) {
  for (const char* scheme : {"pipedream", "spectrain", "interlocking"}) {
    Laboratory laboratory(
        concat("{scheme: {name: ", scheme, "}, pipeline.placement: [0, 1, 0, 1]}"));
    expect_same_bits(laboratory, scheme);
  }
}

/// Its layers put two maps aside; the first crosses all three of four stages' boundaries.
constexpr const char* kUNet =
    "model: {name: unet, depth: 2, convolutions: 1, base_channels: 4, channels: 1, size: 8}, "
    "dataset.classes: 2, loss: {name: binary_cross_entropy}, pipeline.balance: layers";
/// Its cells read the last two outputs.
constexpr const char* kAmoebaNet =
    "model: {name: amoebanet_d, cells: 3, filters: 8, channels: 1, size: 32, classes: 3}, "
    "pipeline.balance: layers";

void expect_same_bits_with_skips(const SchemeCase& scheme, const char* model) {
  const std::string changes = changes_for(scheme, 4);
  Laboratory laboratory(
      concat(changes.substr(0, changes.size() - 1), ", loader.batch_size: 16, ", model, "}"));
  expect_same_bits(laboratory, concat(scheme.name, " of ", model));
}

TEST(Executions, GiveTheSameBitsForEverySchemeWhereMapsSkipStages) {
  for (const SchemeCase& scheme : first_of_each_scheme())
    expect_same_bits_with_skips(scheme, kUNet);
}

TEST(Executions, GiveTheSameBitsWhereCellsReadTheLastTwoOutputs) {
  for (const char* scheme : {"gpipe", "pipedream", "interlocking"})
    expect_same_bits_with_skips({scheme, "{}"}, kAmoebaNet);
}

TEST(Executions, LearnWhatOneStageLearnsWhereSeveralTensorsCross) {
  for (const char* model : {kUNet, kAmoebaNet}) {
    const auto trained = [&](int count) {
      Laboratory laboratory(concat("{scheme: {name: gpipe}, pipeline.microbatches: 2, ",
                                   "train.precision: float64, pipeline.stages: ", count, ", ",
                                   model, "}"));
      Stages stages = laboratory.plan().stages();
      train(laboratory.plan(), stages, Execution::Serial);
      return state_of(stages);
    };
    const auto whole = trained(1), cut = trained(4);
    ASSERT_EQ(whole.size(), cut.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(whole[i].first, cut[i].first);
      EXPECT_LT((whole[i].second - cut[i].second).abs().max().item<double>(),
                tolerance::kTrainedOtherwise)
          << whole[i].first;
    }
  }
}

/// The program with every prediction made by the pass that needs it.
Program without_predicting_updates(Program program) {
  for (auto& worker : program.workers)
    for (std::size_t i = 0; i + 1 < worker.size(); ++i)
      if (worker[i].action.kind == ActionKind::Update && worker[i].weights.makes)
        worker[i + 1].weights.makes = std::exchange(worker[i].weights.makes, false);
  return program;
}

/// One epoch whose learning rate falls from update to update.
void train_with_falling_rate(const Plan& plan, const Program& program, const Stages& stages) {
  Loader loader = plan.training_loader(0, 1);
  execute(program, stages,
          {.batches = loader,
           .lr = [](int minibatch) { return 0.05 / (1 + minibatch); },
           .minibatches_per_epoch = plan.minibatches});
}

TEST(Executions, GiveTheSameBitsWhetherUpdatesPredictOrThePassesAfterThem) {
  for (const SchemeCase& scheme : every_scheme())
    for (const int microbatches : {1, 4}) {
      if (scheme.name == "pipedream_2bw" && microbatches == 1) continue;
      Laboratory laboratory(changes_for(scheme, microbatches));
      const Plan& plan = laboratory.plan();
      const Stages fused = plan.stages(), separate = plan.stages();
      train_with_falling_rate(plan, plan.training, fused);
      train_with_falling_rate(plan, without_predicting_updates(plan.training), separate);
      EXPECT_EQ(difference(fused, separate), "") << scheme.name << scheme.options;
      for (std::size_t i = 0; i < fused.size(); ++i)
        EXPECT_EQ(fused[i]->weights().most_copies(), separate[i]->weights().most_copies());
    }
}

TEST(Executions, HoldNoMoreCopiesThanTheScheduleCounts) {
  for (const SchemeCase& scheme : every_scheme())
    for (const int microbatches : {1, 4}) {
      if (scheme.name == "pipedream_2bw" && microbatches == 1) continue;
      Laboratory laboratory(changes_for(scheme, microbatches));
      const Plan& plan = laboratory.plan();
      const Stages stages = plan.stages();
      train(plan, stages, Execution::Serial);
      const std::size_t count = plan.training.versions.stages.size();
      for (std::size_t i = 0; i < stages.size(); ++i)
        EXPECT_LE(stages[i]->weights().most_copies(),
                  plan.training.versions.stages[i % count][i / count].copies)
            << scheme.name << scheme.options << ": stage " << i % count;
    }
}

TEST(Executions, LeaveOneCopyWhenTheScheduleIsOver) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  const Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, Execution::Threads);
  for (const auto& stage : stages) EXPECT_EQ(stage->weights().copies(), 1);
  EXPECT_EQ(stages[0]->weights().most_copies(), 4);
}

}  // namespace
}  // namespace pipewright::test
