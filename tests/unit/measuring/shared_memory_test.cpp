// SPDX-License-Identifier: Apache-2.0
// What a cut is chosen by counts weights that stages share, and numbers that each worker has, as a
// simulation of that cut does.
#include <gtest/gtest.h>

#include "core/base/as_size.h"
#include "core/experiment/reading.h"
#include "core/measuring/measured_balance.h"
#include "core/measuring/profiling.h"
#include "core/simulation/simulate.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

using Sizes = std::vector<std::int64_t>;

Experiment decoder(const std::string& scheme, const std::string& options, int stages = 2) {
  return read_experiment(parse_yaml(
      concat(
          "{dataset: {name: synthetic}, loader: {batch_size: 4}, scheme: {name: ", scheme,
          "}, model: {name: decoder, vocabulary: 5000, tokens: 4, width: 32, heads: 2, layers: 3",
          options, "}, pipeline: {stages: ", stages,
          ", microbatches: 4, balance: memory}, optimizer: {name: sgd, lr: 0.01}}"),
      "f.yaml"));
}

/// The weights at the peak of each worker, which are large beside activations, simulated with links
/// and messages that take no time.
Sizes simulated_weights(const Experiment& e, const Profile& profile, const Sizes& balance) {
  const Experiment cut = e.with(e.cut(balance));
  const Simulation simulation =
      simulate(prove(cut.schedule(8)), stage_costs(profile, balance),
               ideal_hardware(cut.pipeline.stages), {.fixed = cut.fixed_bytes()});
  Sizes weights;
  for (const WorkerReport& worker : simulation.workers) weights.push_back(worker.peak.weights);
  return weights;
}

/// All cuts of so many layers into two or three stages.
std::vector<Sizes> cuts(std::int64_t layers, int stages) {
  std::vector<Sizes> all;
  for (std::int64_t first = 1; first <= layers - stages + 1; ++first) {
    if (stages == 2) all.push_back({first, layers - first});
    for (std::int64_t second = 1; stages == 3 && first + second < layers; ++second)
      all.push_back({first, second, layers - first - second});
  }
  return all;
}

void expect_simulated(const Experiment& e, const std::string& what) {
  const Profile profile = measure(e, {.device = at::kMeta});
  const StageMemories memories = stage_memories(e, profile, e.pipeline.stages);
  for (const Sizes& balance : cuts(std::ssize(profile.layers), e.pipeline.stages)) {
    const std::vector<StageMemory> planned = memories.of_cut(balance);
    const Sizes simulated = simulated_weights(e, profile, balance);
    std::size_t begin = 0;
    for (std::size_t stage = 0; stage < balance.size(); ++stage) {
      const std::size_t end = begin + static_cast<std::size_t>(balance[stage]);
      EXPECT_EQ(planned[stage].weights, simulated[stage])
          << what << ", stage " << stage << " of [" << balance[0] << ", " << balance[1] << "…]";
      EXPECT_EQ(memories.of(begin, end, static_cast<int>(stage)).total(), planned[stage].total())
          << what << ", stage " << stage;
      begin = end;
    }
  }
}

TEST(SharedMemory, OfATiedDecoderIsPlannedAsItIsSimulatedForEveryCut) {
  for (const char* scheme : {"gpipe", "one_f_one_b"})
    for (const int stages : {2, 3})
      expect_simulated(decoder(scheme, ", tie: same", stages), concat(scheme, " ", stages));
}

TEST(SharedMemory, OfASubspaceIsInEveryStage) {
  const Experiment e = decoder("gpipe", ", subspace: 8");
  EXPECT_EQ(e.fixed_bytes(), 4 * 32 * (5000 + 8));
  expect_simulated(e, "subspace");
}

/// Its last stage borrows 5000 · 32 numbers, whatever the cut that the experiment begins with.
TEST(SharedMemory, IsThatOfTheCutWhichIsPlannedAndNotOfTheExperiments) {
  Experiment e = decoder("gpipe", ", tie: same", 3);
  const Profile profile = measure(e, {.device = at::kMeta});
  const auto weights = [&](const Experiment& of) {
    return stage_memories(of, profile, 2).of_cut(Sizes{2, std::ssize(profile.layers) - 2})[1];
  };
  const StageMemory planned = weights(e);
  EXPECT_GE(planned.weights, 2 * 4 * 5000 * 32) << "a copy and a sum of gradients";
  EXPECT_EQ(weights(e.with(e.cut({1, 1, std::ssize(profile.layers) - 2}))).total(),
            planned.total());
}

/// Each of the two copies sends the other its gradient, which its backward makes.
TEST(SharedMemory, OfCopiesThatAreTiedLateIsThatOfAGradient) {
  const Experiment tied = decoder("pipedream", ", tie: late"), plain = decoder("pipedream", "");
  const Profile profile = measure(plain, {.device = at::kMeta});
  const Sizes cut{2, std::ssize(profile.layers) - 2};
  const auto with = stage_memories(tied, profile, 2).of_cut(cut);
  const auto without = stage_memories(plain, profile, 2).of_cut(cut);
  for (std::size_t stage = 0; stage < 2; ++stage)
    EXPECT_EQ(with[stage].total(), without[stage].total() + 4 * 5000 * 32) << stage;
}

/// Two layers borrow a weight of the second of five.
TEST(SharedMemory, IsBoundedWhereItDependsOnTheStagesAround) {
  Profile profile{.model = "test", .timed = true, .layers = {}};
  for (int layer = 0; layer < 5; ++layer) profile.layers.push_back({.name = std::to_string(layer)});
  const SharedWeights shared{.lent = {{.owner = 1, .bytes = 100, .borrowers = {2, 4}}},
                             .copied = {}};
  std::vector<std::pair<int, int>> pairs;
  for (const Loan& loan : shared.between(5, 3)) pairs.emplace_back(loan.from, loan.to);
  EXPECT_EQ(pairs, (std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 2}}));
  const StageMoment lends{.learns = true, .takes_lent = true, .borrowed = {}};
  const StageMoment borrows{.learns = true, .borrowed = {3, 2}};
  const StageMemories memories(profile, {{lends}, {lends, borrows}, {borrows}}, 0,
                               HeldBesides{.heads = {}, .tables = {}, .shared = shared});
  const auto weights = [&](const Sizes& cut) {
    Sizes all;
    for (const StageMemory& stage : memories.of_cut(cut)) all.push_back(stage.weights);
    return all;
  };
  EXPECT_EQ(weights({2, 1, 2}), (Sizes{200, 300, 300})) << "two stages borrow from the first";
  EXPECT_EQ(weights({2, 2, 1}), (Sizes{200, 300, 300}));
  EXPECT_EQ(weights({1, 1, 3}), (Sizes{0, 100, 200})) << "one stage borrows, from the second";
  EXPECT_EQ(weights({1, 3, 1}), (Sizes{0, 100, 200})) << "only the last layer is elsewhere";
  EXPECT_EQ(memories.of(3, 5, 2).weights, 300) << "the owner may be in the first or in the second";
}

}  // namespace
}  // namespace pipewright::test
