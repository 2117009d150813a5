// SPDX-License-Identifier: Apache-2.0
// Activations thrown away and computed again: not a bit of the result changes, whatever the scheme,
// the execution and the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

/// `rest`: further changes, "model: {…}".
std::string recompute_changes(const SchemeCase& scheme, const std::string& recompute,
                              const std::string& rest) {
  const bool one_stage = scheme.name == "data_parallel";
  return concat("{scheme: ", scheme_text(scheme), ", pipeline.stages: ", one_stage ? 1 : 4,
                ", pipeline.replicas: ", one_stage ? 2 : 1, ", pipeline.recompute: ", recompute,
                ", ", rest, "}");
}

/// Against `never`: weights, buffers and losses of the other two, in both executions.
void expect_bits_of_recomputed(const SchemeCase& scheme, const std::string& rest) {
  Laboratory kept(recompute_changes(scheme, "never", rest));
  const Stages expected = kept.plan().stages();
  const auto losses = flat_losses(train(kept.plan(), expected, Execution::Serial));
  for (const char* recompute : {"always", "except_last"}) {
    Laboratory laboratory(recompute_changes(scheme, recompute, rest));
    const Plan& plan = laboratory.plan();
    for (const Execution execution : {Execution::Serial, Execution::Threads}) {
      const Stages stages = plan.stages();
      const RunResult result = train(plan, stages, execution);
      const std::string what = concat(scheme.name, scheme.options, " ", recompute, " ",
                                      execution == Execution::Serial ? "serial" : "threads");
      EXPECT_EQ(difference(expected, stages), "") << what;
      EXPECT_EQ(flat_losses(result), losses) << what;
      const std::size_t count = plan.training.versions.stages.size();
      for (std::size_t i = 0; i < stages.size(); ++i)
        EXPECT_LE(stages[i]->weights().most_copies(),
                  plan.training.versions.stages[i % count][i / count].copies)
            << what << ": stage " << i % count;
    }
  }
}

TEST(RecomputedTraining, IsTheSameForASchemeOfEachKind) {
  for (const SchemeCase& scheme : scheme_of_each_kind()) {
    for (const char* rest : {kSmallPerceptron, "dataset.train: 48", kSmallConvolutions})
      expect_bits_of_recomputed(scheme, rest);
    if (scheme.name != "interlocking") expect_bits_of_recomputed(scheme, kSmallText);
  }
}

TEST(RecomputedTraining, IsTheSameForEverySchemeOnAMultilayerPerceptron) {
  for (const SchemeCase& scheme : every_scheme())
    expect_bits_of_recomputed(scheme, kSmallPerceptron);
}

TEST(RecomputedTraining, IsTheSameForEverySchemeWithOneMicroBatch) {
  for (const SchemeCase& scheme : every_scheme())
    if (scheme.name != "pipedream_2bw") expect_bits_of_recomputed(scheme, "dataset.train: 48");
}

/// The first of each scheme's options, since these models take longer; and those whose backwards
/// read other weights than their forwards.
std::vector<SchemeCase> schemes_of_interest() {
  std::vector<SchemeCase> some{{"pipedream", "{weight_stashing: false}"},
                               {"spectrain", "{version: 1}"},
                               {"interlocking", "{width: 2}"}};
  std::ranges::copy(first_of_each_scheme(), std::back_inserter(some));
  return some;
}

TEST(RecomputedTraining, IsTheSameForEverySchemeWithBatchNormAndDropout) {
  for (const SchemeCase& scheme : schemes_of_interest())
    for (const char* statistics : {"per_microbatch", "deferred"})
      expect_bits_of_recomputed(scheme,
                                concat(kSmallConvolutions, ", pipeline.batch_norm: ", statistics));
}

/// Their gradients are added inside the product, in both halves of a split backward too.
TEST(RecomputedTraining, IsTheSameWithWideLayers) {
  for (const SchemeCase& scheme : schemes_of_interest())
    expect_bits_of_recomputed(scheme,
                              "pipeline.microbatches: 4, dataset.train: 16, loader.batch_size: 8, "
                              "pipeline.balance: layers, "
                              "model: {name: mlp, widths: [264, 256, 264, 256, 3]}");
}

TEST(RecomputedTraining, IsTheSameWhereIntegersAndMasksCross) {
  for (const SchemeCase& scheme : schemes_of_interest())
    if (scheme.name != "interlocking")  // no heads there
      expect_bits_of_recomputed(scheme, kSmallText);
}

TEST(RecomputedTraining, IsTheSameWhereMapsSkipStages) {
  for (const char* name : {"gpipe", "pipedream", "interlocking", "spectrain"})
    expect_bits_of_recomputed(
        {name, "{}"},
        "pipeline.microbatches: 4, dataset.train: 32, loader.batch_size: 16, dataset.classes: 2, "
        "loss: {name: binary_cross_entropy}, pipeline.balance: layers, model: {name: unet, depth: "
        "2, convolutions: 1, base_channels: 4, channels: 1, size: 8}");
}

TEST(RecomputedTraining, IsTheSameWhereStagesShareWorkers) {
  for (const char* name : {"gpipe", "one_f_one_b", "pipedream"})
    for (const char* placement : {"[0, 1, 0, 1]", "[0, 0, 1, 1]"})
      expect_bits_of_recomputed(
          {name, "{}"},
          concat("pipeline.microbatches: 2, dataset.train: 24, pipeline.placement: ", placement));
}

/// A layer sees a mini-batch's every micro-batch once, and once more where it is recomputed.
TEST(RecomputedTraining, RunsEachForwardTwiceButTheLast) {
  for (const auto& [recompute, again] :
       {std::pair{"never", 0}, std::pair{"always", 4}, std::pair{"except_last", 3}}) {
    Laboratory laboratory(
        concat("{scheme: {name: gpipe}, pipeline.microbatches: 4, dataset.train: "
               "8, pipeline.recompute: ",
               recompute, "}"));
    std::atomic<int> first = 0, second = 0;
    laboratory.watch(2, [&](const Pass& pass) { ++(pass.recomputing ? second : first); });
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Threads);
    EXPECT_EQ(first, 4) << recompute;
    EXPECT_EQ(second, again) << recompute;
  }
}

}  // namespace
}  // namespace pipewright::test
