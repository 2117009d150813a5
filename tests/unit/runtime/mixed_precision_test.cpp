// SPDX-License-Identifier: Apache-2.0
// Trainings in mixed precision: the same bits in every execution, however the model is cut,
// recomputed and its backwards are split; and what crosses edges is half as large.
#include <gtest/gtest.h>

#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

const std::vector<std::string> kModels{
    "model.name: mlp",
    "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}",
    "model: {name: encoder, layers: 4, width: 8, heads: 2, feed_forward: 12, tokens: 5, "
    "dropout: 0.1}, pipeline.balance: layers",
    "model: {name: gpt, vocabulary: 12, tokens: 5, layers: 4, width: 8, heads: 2, dropout: 0.1}, "
    "pipeline.balance: layers",
};

struct Trained {
  Stages stages;
  std::vector<double> losses;
};

class MixedPrecision : public testing::TestWithParam<const char*> {
 protected:
  static std::string mixed() {
    return concat("train.precision: ", GetParam(), ", dataset.train: 40");
  }

  static Trained trained(const std::string& changes) {
    Laboratory laboratory(concat("{", mixed(), ", ", changes, "}"));
    Stages stages = laboratory.plan().stages();
    const RunResult result = train(laboratory.plan(), stages, Execution::Serial);
    return {std::move(stages), flat_losses(result)};
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, MixedPrecision, testing::Values("bfloat16", "float16"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(MixedPrecision, GivesTheSameBitsInEveryExecutionForEveryScheme) {
  for (const SchemeCase& scheme : every_scheme()) {
    const bool one_stage = scheme.name == "data_parallel";
    Laboratory laboratory(concat("{scheme: ", scheme_text(scheme), ", ", mixed(),
                                 ", pipeline.microbatches: 4, pipeline.stages: ", one_stage ? 1 : 4,
                                 ", pipeline.replicas: ", one_stage ? 2 : 1, "}"));
    expect_same_bits(laboratory, scheme.name + scheme.options);
  }
}

TEST_P(MixedPrecision, GivesTheSameBitsInEveryExecutionForEveryModel) {
  for (const std::string& model : kModels)
    for (const char* scheme : {"spectrain", "one_f_one_b"}) {
      Laboratory laboratory(concat("{scheme: {name: ", scheme, "}, pipeline.replicas: 2, ", mixed(),
                                   ", pipeline.microbatches: 2, ", model, "}"));
      expect_same_bits(laboratory, concat(scheme, " of ", model));
    }
}

TEST_P(MixedPrecision, LearnsTheSameHoweverTheModelIsCut) {
  for (const std::string& model : kModels) {
    const Trained whole = trained(concat("scheme: {name: gpipe}, pipeline.stages: 1, ", model));
    const Trained cut = trained(concat("scheme: {name: gpipe}, pipeline.stages: 4, ", model));
    EXPECT_EQ(whole.losses, cut.losses) << model;
    const auto of_whole = state_of(whole.stages), of_cut = state_of(cut.stages);
    ASSERT_EQ(of_whole.size(), of_cut.size());
    for (std::size_t i = 0; i < of_whole.size(); ++i)
      EXPECT_TRUE(at::equal(of_whole[i].second, of_cut[i].second)) << of_whole[i].first;
  }
}

TEST_P(MixedPrecision, LearnsTheSameWhetherActivationsAreKeptOrComputedAgain) {
  for (const std::string& model : kModels)
    for (const char* scheme : {"one_f_one_b", "pipedream", "spectrain"}) {
      const std::string changes =
          concat("scheme: {name: ", scheme, "}, pipeline.microbatches: 2, ", model);
      const Trained kept = trained(changes + ", pipeline.recompute: never");
      const Trained again = trained(changes + ", pipeline.recompute: always");
      EXPECT_EQ(difference(kept.stages, again.stages), "") << scheme << " of " << model;
      EXPECT_EQ(kept.losses, again.losses) << scheme << " of " << model;
    }
}

TEST_P(MixedPrecision, LearnsTheSameWhetherBackwardsAreSplit) {
  for (const std::string& model : kModels) {
    const std::string rest = concat(", pipeline.microbatches: 4, ", model);
    const Trained whole = trained("scheme: {name: one_f_one_b}" + rest);
    for (const char* scheme : {"{name: zb_h1}", "{name: zb_h1, chunks: 2}", "{name: interleaved}"})
      EXPECT_EQ(difference(whole.stages, trained(concat("scheme: ", scheme, rest)).stages), "")
          << scheme << " of " << model;
  }
}

TEST_P(MixedPrecision, KeepsWeightsAndStateInFloat32) {
  const Trained all = trained("scheme: {name: spectrain}, " + kModels[1]);
  for (const auto& [name, tensor] : state_of(all.stages))
    EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
  for (const auto& stage : all.stages)
    for (const at::Tensor& slot : stage->optimizer_state().slots)
      EXPECT_EQ(slot.scalar_type(), at::kFloat);
}

/// Updates would be lost in narrow weights: at this learning rate most are less than a half of a
/// unit in their last place.
TEST_P(MixedPrecision, LosesNoSmallUpdate) {
  const auto weights_after = [](const char* lr) {
    Laboratory laboratory(concat("{scheme: {name: gpipe}, pipeline.stages: 1, optimizer.lr: ", lr,
                                 ", ", mixed(), "}"));
    const Stages stages = laboratory.plan().stages();
    const at::Tensor before = stages[0]->weights().latest().clone();
    Loader loader = laboratory.plan().training_loader(0, 1);
    execute(laboratory.plan().training, stages,
            {.batches = loader,
             .lr = [&](int) { return std::stod(lr); },
             .minibatches_per_epoch = laboratory.plan().minibatches});
    return std::pair(before, stages[0]->weights().latest().clone());
  };
  const auto [before, after] = weights_after("1e-5");
  EXPECT_FALSE(at::equal(before, after));
  const at::ScalarType narrow =
      std::ranges::find(kPrecisions, std::string_view(GetParam()), &Precision::name)->values;
  EXPECT_LT((before.to(narrow) != after.to(narrow)).sum().item<double>(),
            0.1 * static_cast<double>(before.numel()));
}

TEST_P(MixedPrecision, SendsHalfTheBytes) {
  const auto bytes = [](const char* precision) {
    Laboratory laboratory(concat("{scheme: {name: gpipe}, train.precision: ", precision, "}"));
    const Stages stages = laboratory.plan().stages();
    double sum = 0;
    for (const EdgeTraffic& edge : train(laboratory.plan(), stages, Execution::Serial).traffic)
      sum += edge.value_bytes;
    return sum;
  };
  EXPECT_GT(bytes(GetParam()), 0);
  EXPECT_EQ(2 * bytes(GetParam()), bytes("float32"));
}

TEST_P(MixedPrecision, TakesEveryKindOfCodec) {
  for (const char* codec : {"fp16", "bf16", "fp8", "mx", "uniform", "sort_quantization", "top_k",
                            "sign", "k_means", "power_iteration", "aq_sgd"}) {
    Laboratory laboratory(concat("{scheme: {name: pipedream}, ", mixed(),
                                 ", pipeline.compression: {name: ", codec, "}}"));
    expect_same_bits(laboratory, codec);
  }
}

}  // namespace
}  // namespace pipewright::test
