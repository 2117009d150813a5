// SPDX-License-Identifier: Apache-2.0
// One weight for the token embedding on the first stage and the output on the last (`tie: same`):
// the same bits in every execution, and what crosses for it.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/in_processes.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

std::string tied(const std::string& rest, const std::string& tie = "same") {
  return concat(
      "{model: {name: gpt, vocabulary: 12, tokens: 5, layers: 2, width: 8, heads: 2, dropout: 0.1, "
      "tie: ",
      tie, "}, dataset.train: 40, pipeline.balance: [1, 1, 1, 2], ",
      rest.find("microbatches") == std::string::npos ? "pipeline.microbatches: 4, " : "", rest,
      "}");
}
constexpr double kBytes = 12 * 8 * 4;  // of the weight in float32

bool refuses_tie(const std::string& changes) {
  try {
    const Laboratory laboratory(changes);
    return false;
  } catch (const Error& error) {
    return error.message().find("model.tie is same, but with this scheme") != std::string::npos;
  }
}

TEST(LentWeightsTraining, GivesTheSameBitsInEveryExecutionForEveryScheme) {
  int refused = 0;
  for (const SchemeCase& scheme : every_scheme()) {
    if (scheme.name == "data_parallel") continue;  // of one stage
    const std::string changes = tied(concat("scheme: ", scheme_text(scheme)));
    if (refuses_tie(changes)) {
      EXPECT_EQ(scheme.name, "interlocking");
      ++refused;
      continue;
    }
    Laboratory laboratory(changes);
    expect_same_bits(laboratory, changes);
  }
  EXPECT_GT(refused, 0);
}

TEST(LentWeightsTraining, GivesTheSameBitsInProcesses) {
  for (const char* scheme : {"gpipe", "pipedream", "pipedream_2bw", "spectrain", "zb_h1"})
    for (const char* rest :
         {"pipeline.placement: [0, 1, 1, 0]", "pipeline.replicas: 2", "train.precision: bfloat16",
          "train.precision: float16", "pipeline.recompute: always", "pipeline.offload: always"}) {
      const std::string changes = tied(concat("scheme: {name: ", scheme, "}, ", rest));
      expect_same_bits_in_processes(changes);
    }
}

std::map<std::pair<int, int>, std::pair<double, double>> crossed(const std::string& rest) {
  Laboratory laboratory(tied(rest));
  const Stages stages = laboratory.plan().stages();
  std::map<std::pair<int, int>, std::pair<double, double>> all;
  for (const EdgeTraffic& edge : train(laboratory.plan(), stages, Execution::Serial).traffic)
    all[{edge.from, edge.to}] = {edge.messages, edge.sent_bytes};
  return all;
}

/// Five mini-batches of four micro-batches.
TEST(LentWeightsTraining, SendsTheWeightThereAndItsGradientBackOncePerMiniBatch) {
  auto edges = crossed("scheme: {name: gpipe}");
  const std::pair<double, double> five{5, 5 * kBytes};
  EXPECT_EQ(edges.at({0, 3}), five);
  EXPECT_EQ(edges.at({3, 0}), five);
  edges = crossed("scheme: {name: gpipe}, pipeline.compression: {name: fp16}");
  EXPECT_EQ(edges.at({0, 3}), five) << "no codec rounds weights";
  EXPECT_EQ(edges.at({3, 0}), five);
  edges = crossed("scheme: {name: gpipe}, pipeline.placement: [0, 1, 2, 0]");
  EXPECT_FALSE(edges.contains({0, 3})) << "both are on one worker";
  edges = crossed("scheme: {name: gpipe}, train.precision: bfloat16");
  EXPECT_EQ(edges.at({0, 3}), std::pair(5.0, 5 * kBytes / 2));
  // Four mini-batches have been forwarded before the first update: they read the same weights.
  edges = crossed("scheme: {name: pipedream}, pipeline.microbatches: 1");
  EXPECT_EQ(edges.at({0, 3}), std::pair(2.0, 2 * kBytes));
  EXPECT_EQ(edges.at({3, 0}), five);
}

/// The same text again and again, so that all micro-batches have about the same gradients.
class EqualTexts final : public Dataset {
 public:
  void open(const DatasetRequest&) override {}
  std::int64_t size(Split) const override { return 40; }
  std::vector<std::int64_t> sample_shape() const override { return {5}; }
  std::int64_t classes() const override { return 12; }
  std::int64_t vocabulary() const override { return 12; }
  Task task() const override { return Task::Continue; }
  Batch batch(Split, std::span<const std::int64_t> indices, const RandomStream*) const override {
    const at::Tensor text = at::arange(6).expand({std::ssize(indices), 6});
    return {.x = {text.narrow(1, 0, 5).contiguous()}, .y = text.narrow(1, 1, 5).contiguous()};
  }
};

/// The last stage's loss scale is so large at first that its gradients overflow, and then for a
/// while only their sums over eight micro-batches, which it sends the other stage.
TEST(LentWeightsTraining, HalvesTheScaleOfTheStageWhoseSumForAnotherOverflows) {
  for (const auto& [tie, scheme] :
       {std::pair("same", "gpipe"), {"same", "zb_h1"}, {"late", "pipedream"}}) {
    const std::string what = concat(tie, ", ", scheme);
    Laboratory laboratory(tied(
        concat("scheme: {name: ", scheme, "}, train.precision: float16, pipeline.microbatches: 8"),
        tie));
    laboratory.dataset = std::make_shared<EqualTexts>();
    const Stages stages = laboratory.plan().stages();
    stages.back()->loss_scale()->scale = std::int64_t{1} << 22;
    for (int epoch = 0; epoch < 4; ++epoch)
      ASSERT_NO_THROW(train(laboratory.plan(), stages, Execution::Serial, nullptr, epoch))
          << what << ", epoch " << epoch;
    EXPECT_GT(stages.back()->loss_scale()->skipped, 0) << what << ": nothing overflowed";
    for (const auto& stage : stages)
      EXPECT_GT(stage->loss_scale()->since, 0)
          << what << ": stage " << stage->index() << " skips its updates for ever, at "
          << stage->loss_scale()->scale;
  }
}

TEST(LentWeightsTraining, IsRefusedBesideWhatLooksAtSingleMicroBatches) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"perturb.weight_noise: 0.1", "perturb.weight_noise gives each its own"},
      {"probes: [{name: gradient_alignment}]", "probes[0] gradient_alignment compares gradients"},
      {"probes: [{name: norms}, {name: gradient_noise}]", "probes[1] gradient_noise compares"},
      {"probes: [{name: mismatch}]", "probes[0] mismatch compares"}};
  for (const auto& [changes, why] : refused) try {
      const Laboratory laboratory(tied(changes));
      ADD_FAILURE() << "nothing is refused: " << changes;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(why), std::string::npos) << error.message();
    }
  const Laboratory untied(tied("probes: [{name: mismatch}]", "start"));
}

/// Both begin as the embedding and are then two parameters.
TEST(LentWeightsTraining, StartsEqualWhereOnlyTheStartIsShared) {
  for (const char* tie : {"start", "none"}) {
    Laboratory laboratory(tied("scheme: {name: gpipe}", tie));
    const Stages stages = laboratory.plan().stages();
    const auto shared = [&] {
      std::map<std::string, at::Tensor> all;
      for (const auto& [name, value] : state_of(stages)) all[name] = value;
      return at::equal(all.at("embeddings.wte.weight"), all.at("head.weight"));
    };
    EXPECT_EQ(shared(), std::string(tie) == "start");
    train(laboratory.plan(), stages, Execution::Serial);
    EXPECT_FALSE(shared());
  }
}

}  // namespace
}  // namespace pipewright::test
