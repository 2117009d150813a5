// SPDX-License-Identifier: Apache-2.0
// Skip connections between stages: tensors go straight to where they are taken back, their
// gradients straight back, and the stages between never see them; in every execution.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "core/base/as_size.h"
#include "core/nn/layers.h"
#include "core/nn/skips.h"
#include "core/runtime/executor.h"
#include "core/runtime/program.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/in_processes.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using namespace std::chrono_literals;

Schedule gpipe(int stages, std::vector<Skip> skips) {
  return pipeline_schedule({.stages = stages, .microbatches = 2, .skips = std::move(skips)},
                           {.fill_drain = true});
}

const Instruction& instruction_named(const Program& program, const std::string& name) {
  for (const auto& worker : program.workers)
    for (const Instruction& instruction : worker)
      if (action_name(instruction.action, program.schedule.shape.microbatches) == name)
        return instruction;
  throw std::invalid_argument("there is no " + name);
}

/// "3×1 2×2 | 1": tensors of each group and how many go with it; then those behind.
std::string bypass_text(const Bypass& bypass) {
  std::string text;
  for (const auto& [stage, port, count, gradients, lent] : bypass.groups)
    text += concat(port.used() ? "" : "unused ", "to ", port.to, ": ", count, "; ");
  return text + concat("behind: ", bypass.behind);
}

TEST(SkipProgram, SendsStraightToTheStageThatTakesBack) {
  // Three from stage 0: two to stage 3, one to stage 2; one from 1 to 2, the next.
  const Program program = compile(prove(gpipe(4, {{0, 3}, {0, 3}, {0, 2}, {1, 2}})));
  EXPECT_EQ(bypass_text(instruction_named(program, "0F0.1").bypass_sent),
            "to 3: 2; to 2: 1; behind: 0");
  EXPECT_EQ(bypass_text(instruction_named(program, "1F0.1").bypass_sent), "behind: 1");
  EXPECT_EQ(bypass_text(instruction_named(program, "2F0.1").bypass_received), "to 2: 1; behind: 1");
  EXPECT_EQ(bypass_text(instruction_named(program, "3F0.1").bypass_received), "to 3: 2; behind: 0");
  EXPECT_EQ(bypass_text(instruction_named(program, "3B0.1").bypass_sent), "to 0: 2; behind: 0");
  EXPECT_EQ(bypass_text(instruction_named(program, "2B0.1").bypass_sent), "to 0: 1; behind: 1");
  EXPECT_EQ(bypass_text(instruction_named(program, "0B0.1").bypass_received),
            "to 0: 2; to 0: 1; behind: 0");
  const auto& sent = instruction_named(program, "0F0.1").bypass_sent.groups;
  const Port& received = instruction_named(program, "3F0.1").bypass_received.groups[0].port;
  EXPECT_EQ(sent[0].port.link, received.link);
  EXPECT_EQ(sent[0].port.turn, received.turn);
  EXPECT_NE(sent[0].port.link, sent[1].port.link);
  EXPECT_EQ(sends_of(instruction_named(program, "0F0.1")).size(), 3U);
  EXPECT_EQ(program.messages, 2 * (3 + 3 + 2 + 2));
}

TEST(SkipProgram, TakesNoGradientOfWhatHasNone) {
  const Program program = compile(prove(gpipe(4, {{0, 3, false}, {0, 2, false}, {0, 1, false}})));
  EXPECT_EQ(bypass_text(instruction_named(program, "0F0.1").bypass_sent),
            "to 3: 1; to 2: 1; behind: 1");
  EXPECT_EQ(bypass_text(instruction_named(program, "3B0.1").bypass_sent),
            "unused to -1: 1; behind: 0");
  EXPECT_EQ(bypass_text(instruction_named(program, "0B0.1").bypass_received),
            "unused to -1: 1; unused to -1: 1; behind: 1");
  EXPECT_EQ(program.messages, 2 * (3 + 3 + 2));
}

TEST(SkipProgram, TakesNoGradientFromALossThatIsMadeBefore) {
  PipelineShape shape{.stages = 4, .skips = {{0, 3}}};
  const Program program = compile(prove(schedule_of("interlocking", "{width: 2}", shape)));
  EXPECT_EQ(bypass_text(instruction_named(program, "0B0").bypass_received),
            "unused to -1: 1; behind: 0");
  EXPECT_EQ(bypass_text(instruction_named(program, "3B0").bypass_sent),
            "unused to -1: 1; behind: 0");
}

TEST(SkipProgram, LetsStraightLinksHoldAnyNumberOfMessages) {
  PipelineShape shape{.stages = 3, .minibatches = 4, .skips = {{0, 2}}, .link_capacity = 2};
  const Program program = compile(prove(evaluation_schedule(shape)));
  const Instruction& first = instruction_named(program, "0F0");
  EXPECT_EQ(program.links[as_size(first.send.link)].capacity, 2);
  EXPECT_EQ(program.links[as_size(first.bypass_sent.groups[0].port.link)].capacity, 0);
}

TEST(SkipProgram, RefusesConnectionsThatAreNone) {
  const std::vector<std::vector<Skip>> wrong{{{1, 1}},  {{2, 1}},         {{0, 4}},
                                             {{-1, 2}}, {{0, 2}, {1, 3}}, {{0, 2}, {0, 3}}};
  for (const std::vector<Skip>& skips : wrong) EXPECT_THROW(prove(gpipe(4, skips)), Error);
}

/// Puts the first tensor aside and goes on with a part of the model's own; says how many came.
class Counting final : public Layer {
 public:
  explicit Counting(LayerPtr inner) : inner_(std::move(inner)) { Layer::set_name(inner_->name()); }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    return inner_->forward(input, parameters, buffers, pass);
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    if (!inputs[0].is_meta()) most = std::max(most, inputs.size());
    return inner_->forward_all(inputs, parameters, buffers, pass);
  }
  mutable std::size_t most = 0;

 private:
  LayerPtr inner_;
};

/// Two maps are put aside, the second while the first is waiting.
constexpr const char* kSkipUNet =
    "model: {name: unet, depth: 2, convolutions: 1, base_channels: 4, channels: 1, size: 8}, "
    "dataset.classes: 2, loss: {name: binary_cross_entropy}, loader.batch_size: 16, "
    "pipeline.microbatches: 4, dataset.train: 32, pipeline.balance: layers";

TEST(SkipTraining, ShowsStagesBetweenNothingOfIt) {
  Laboratory laboratory(concat("{scheme: {name: gpipe}, pipeline.stages: 8, ", kSkipUNet, "}"));
  const Experiment& e = laboratory.experiment;
  std::vector<std::shared_ptr<Counting>> counting;
  std::size_t layer = 0;
  for (int stage = 0; stage < e.pipeline.stages; ++stage) {
    const bool between = std::ranges::none_of(
        e.layout.skips, [&](Skip skip) { return skip.from == stage || skip.to == stage; });
    const auto count = static_cast<std::size_t>(e.layout.balance[static_cast<std::size_t>(stage)]);
    for (std::size_t i = layer; between && i < layer + count; ++i) {
      counting.push_back(std::make_shared<Counting>(e.layers[i]));
      laboratory.experiment.layers[i] = counting.back();
    }
    layer += count;
  }
  const Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, Execution::Serial);
  EXPECT_FALSE(counting.empty());
  for (const auto& each : counting) EXPECT_EQ(each->most, 1U);
}

TEST(SkipTraining, GivesTheSameBitsInProcesses) {
  for (const char* scheme : {"gpipe", "pipedream", "interlocking"})
    for (const char* placement : {"[]", "[0, 1, 0, 1]", "[0, 1, 1, 0]"}) {
      const std::string changes =
          concat("{scheme: {name: ", scheme, "}, ", kSkipUNet,
                 ", pipeline.stages: 4, pipeline.placement: ", placement, "}");
      expect_same_bits_in_processes(changes);
    }
}

TEST(SkipTraining, LearnsWhatOneStageLearnsWhateverTheCut) {
  const auto trained = [](const std::string& shape) {
    Laboratory laboratory(
        concat("{scheme: {name: gpipe}, ", kSkipUNet, ", train.precision: float64, ", shape, "}"));
    Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    return state_of(stages);
  };
  const std::size_t layers =
      Laboratory(concat("{pipeline.stages: 1, ", kSkipUNet, "}")).experiment.layers.size();
  const auto whole = trained("pipeline.stages: 1");
  for (std::size_t stages = 2; stages <= layers; stages += 3)
    for (const char* recompute : {"never", "always"}) {
      const auto cut =
          trained(concat("pipeline.stages: ", stages, ", pipeline.recompute: ", recompute));
      ASSERT_EQ(whole.size(), cut.size());
      for (std::size_t i = 0; i < whole.size(); ++i)
        EXPECT_LT((whole[i].second - cut[i].second).abs().max().item<double>(),
                  tolerance::kTrainedOtherwise)
            << whole[i].first << ", " << stages << " stages";
    }
}

/// y = x + the tensor put aside last, which stays.
class AddsWhatItSees final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return x;
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor>, std::span<at::Tensor>,
                      const Pass&) const override {
    Tensors outputs = inputs;
    outputs[0] = inputs[0] + inputs.back();
    return outputs;
  }
  SkipUse skips() const override { return {.looks = 1}; }
};

/// The gradients of all stages that look come back to the one that put aside.
TEST(SkipTraining, LearnsFromEveryStageThatLooks) {
  using Balance = std::vector<std::int64_t>;
  const auto trained = [](const Balance& balance) {
    Laboratory laboratory(
        concat("{scheme: {name: gpipe}, model.widths: [6, 5, 5, 5, 5, 5, 5, 5, 3], "
               "dataset.shape: [6], train.precision: float64, pipeline.microbatches: 2, "
               "pipeline.stages: ",
               balance.size(), "}"));
    Experiment& e = laboratory.experiment;
    const auto own = e.layers;
    const auto looks = std::make_shared<AddsWhatItSees>();
    e.layers = {own[0], stash(), own[1], looks, own[2], looks, add_stashed(), own[7]};
    e.layout = e.cut(balance);
    Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    return state_of(stages);
  };
  const auto whole = trained({8});
  for (const Balance& balance : {Balance{2, 2, 2, 2}, Balance(8, 1), Balance{3, 1, 4}}) {
    const auto cut = trained(balance);
    ASSERT_EQ(whole.size(), cut.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_LT((whole[i].second - cut[i].second).abs().max().item<double>(),
                tolerance::kTrainedOtherwise)
          << whole[i].first << ", " << balance.size() << " stages";
  }
}

/// Forward, from the client to each server, and to the client's own last stage over no edge.
TEST(SkipTraining, SendsMasksOnceToWhoeverLooks) {
  const std::string changes =
      "{scheme: {name: gpipe}, pipeline.microbatches: 4, dataset.train: 24, "
      "pipeline.balance: [2, 1, 1, 2], pipeline.placement: [0, 1, 2, 0], model: {name: roberta, "
      "vocabulary: 9, classes: 3, layers: 4, width: 8, heads: 2, feed_forward: 12, tokens: 6}}";
  Laboratory laboratory(changes);
  const Stages serial = laboratory.plan().stages();
  const RunResult result = train(laboratory.plan(), serial, Execution::Serial);
  const double mask = 24 * 6, activations = 24 * 6 * 8 * 4;
  std::map<std::pair<int, int>, double> bytes;
  for (const EdgeTraffic& edge : result.traffic) bytes[{edge.from, edge.to}] = edge.sent_bytes;
  const std::map<std::pair<int, int>, double> expected{
      {{0, 1}, activations + mask}, {{0, 2}, mask},        {{1, 2}, activations},
      {{2, 3}, activations},        {{3, 2}, activations}, {{2, 1}, activations},
      {{1, 0}, activations}};
  EXPECT_EQ(bytes, expected);
  Stages threads = laboratory.plan().stages();
  EXPECT_EQ(train(laboratory.plan(), threads, Execution::Threads).traffic, result.traffic);
  EXPECT_EQ(difference(serial, threads), "");
}

TEST(SkipTraining, EvaluatesInEveryExecution) {
  Laboratory laboratory(concat("{scheme: {name: gpipe}, pipeline.stages: 6, ", kSkipUNet, "}"));
  const Plan& plan = laboratory.plan();
  const Stages stages = plan.stages();
  std::vector<double> expected;
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    Loader loader = plan.evaluation_loader();
    const RunResult result = execute(plan.evaluation, stages,
                                     {.batches = loader,
                                      .lr = [](int) { return 0.0; },
                                      .minibatches_per_epoch = loader.minibatches(),
                                      .execution = execution});
    if (expected.empty()) expected = flat_losses(result);
    EXPECT_EQ(flat_losses(result), expected);
    EXPECT_FALSE(expected.empty());
  }
}

}  // namespace
}  // namespace pipewright::test
