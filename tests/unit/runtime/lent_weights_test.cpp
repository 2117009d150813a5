// SPDX-License-Identifier: Apache-2.0
// One weight for the token embedding on the first stage and the output on the last (`tie: same`):
// the same bits in every execution, and what crosses for it.
#include <gtest/gtest.h>

#include <map>

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
