// SPDX-License-Identifier: Apache-2.0
// Passes that are recorded as graphs and launched again give the bits of passes that are performed,
// and most rounds are launched. A stand-in for the device records (fake_graphs.h).
#include <gtest/gtest.h>

#include "core/runtime/executor.h"
#include "core/runtime/interludes.h"
#include "core/tensors/torch.h"
#include "tests/unit/device/elsewhere.h"
#include "tests/unit/device/fake_device.h"
#include "tests/unit/device/fake_graphs.h"
#include "tests/unit/device/stream_model.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

/// The same with the stand-in.
GraphsUsed expect_same_with_graphs(const std::string& changes, int epochs = 1) {
  FakeGraphs graphs;
  const GraphsUsed used = expect_same_with_graphs(changes, fake_device(0), graphs, epochs);
  // Each graph once when it was recorded, and once in each launched period.
  if (used.rounds > 0) {
    EXPECT_GE(graphs.launches(),
              static_cast<std::int64_t>(used.graphs) * (used.rounds / used.period + 1));
  }
  return used;
}

/// The same, and expects rounds to be launched; now and then another thread frees memory too late
/// for them, so that three trainings have a chance.
GraphsUsed expect_launched(const std::string& changes) {
  GraphsUsed used;
  for (int i = 0; i < 3 && used.rounds == 0; ++i) used = expect_same_with_graphs(changes);
  EXPECT_GT(used.rounds, 0) << changes << ": " << used.refusal;
  return used;
}

class Graphs : public ::testing::Test {
 protected:
  void SetUp() override { model_.take_faults(); }
  void TearDown() override { EXPECT_EQ(model_.take_faults(), std::set<std::string>{}); }

  StreamModel& model_ = StreamModel::instance();
};

TEST_F(Graphs, GiveTheSameBitsForEveryScheme) {
  // Pools and rings of up to four, one for each stage, repeat together after the least common
  // multiple of 1 to 4 rounds at the latest.
  constexpr int kLongest = 12;
  for (const SchemeCase& scheme : every_scheme()) {
    if (scheme.name == "data_parallel") continue;
    const std::string changes = long_training(scheme_text(scheme));
    if (SchemeReading(scheme.name, scheme.options).scheme->repeats())
      EXPECT_LE(expect_launched(changes).period, kLongest) << changes;
    else
      expect_same_with_graphs(changes);
  }
}

TEST_F(Graphs, GiveTheSameBitsForASchemeOfEachKind) {
  for (const SchemeCase& scheme : scheme_of_each_kind())
    if (scheme.name != "pipemare") expect_launched(long_training(scheme_text(scheme)));
}

/// Eight versions of the first stage's weights, seven of the second's, … lie in rings of eight:
/// rings of their own lengths would repeat themselves together after 840 mini-batches.
TEST_F(Graphs, HaveThePeriodOfTheLongestRingOfVersions) {
  const GraphsUsed used = expect_launched(
      "{scheme: {name: pipedream}, pipeline.stages: 8, model.widths: [6, 5, 5, 5, 5, 5, 5, 5, 3], "
      "loader.batch_size: 4, dataset.train: 384}");
  EXPECT_EQ(used.period % 8, 0);
  EXPECT_LE(used.period, 24);
}

/// The stream and the allocator are free again, and an error in a recorded pass names the option.
TEST_F(Graphs, EndWhereAnExceptionCutsARecordingOff) {
  Laboratory laboratory(long_training("{name: pipedream}"));
  int passes = 0;
  laboratory.watch(1, [&passes](const Pass& pass) {
    if (pass.training && ++passes == 60) throw std::runtime_error("the pass is broken");
  });
  const Plan& plan = plan_on(laboratory, {fake_device(0)});
  for (const auto& [last, recorded] : {std::pair{60, false}, {70, true}, {80, false}}) {
    passes = 60 - last;
    FakeGraphs graphs;
    bool named = false;
    try {
      trained(plan, &graphs);
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("the pass is broken"), std::string::npos);
      named = error.message().find("pipeline.cuda_graphs: false") != std::string::npos;
    }
    EXPECT_EQ(named, recorded);
    EXPECT_EQ(FakeGraphs::pool(), nullptr);
    EXPECT_EQ(FakeGraphs::recording(), nullptr);
  }
}

TEST_F(Graphs, GiveTheSameBitsWithAttentionInMixedPrecisionAndWithRecomputation) {
  const std::string encoder =
      ", model: {name: encoder, layers: 4, width: 8, heads: 2, feed_forward: 12, tokens: 5, "
      "dropout: 0}, "
      "pipeline.balance: layers";
  for (const char* scheme : {"{name: one_f_one_b}", "{name: pipedream}", "{name: spectrain}"}) {
    expect_launched(long_training(scheme, encoder));
    expect_launched(long_training(scheme, ", train.precision: bfloat16"));
    expect_launched(long_training(scheme, ", pipeline.recompute: always"));
  }
}

TEST_F(Graphs, GiveTheSameBitsWithBatchNorm) {
  for (const char* scheme : {"{name: one_f_one_b}", "{name: pipedream}"})
    for (const char* recompute : {"never", "always"})
      expect_launched(long_training(
          scheme, concat(", pipeline.recompute: ", recompute,
                         ", model: {name: sequential, input: [2, 4, 4], layers: [batch_norm, relu, "
                         "flatten, {linear: 6}, relu, {linear: 5}, relu, {linear: 3}]}")));
}

TEST_F(Graphs, GiveTheSameBitsWhateverUpdatesDo) {
  for (const char* updates : {", optimizer: {name: adamw}", ", optimizer: {name: muon, lr: 0.01}",
                              ", gradient_rules: [{name: clip, norm: 0.5}]",
                              ", gradient_rules: [{name: clip, norm: 0.5, over: model}]"})
    expect_launched(long_training("{name: one_f_one_b}", updates));
  expect_launched(long_training("{name: pipeoptim}", ", optimizer: {name: adamw}"));
}

/// 97 samples are 24 mini-batches and one of a single sample, four times.
TEST_F(Graphs, LeaveOddMiniBatchesOut) {
  std::int64_t launched = 0;
  for (const char* scheme : {"{name: one_f_one_b}", "{name: pipedream}"}) {
    const GraphsUsed used = expect_same_with_graphs(
        concat("{scheme: ", scheme, ", pipeline.stages: 4, pipeline.microbatches: 1, ",
               "loader.batch_size: 4, dataset.train: 197}"),
        4);
    EXPECT_LT(used.rounds, 200 - 4) << scheme;
    launched += used.rounds;
  }
  EXPECT_GT(launched, 0);
}

/// Pauses now and then, and changes nothing.
struct Pauses final : Interludes {
  const std::vector<int>& after() const override { return minibatches; }
  void before(const Action&, Stage& stage) override { aside = stage.buffers_aside(true); }
  void pause(int) override { ++count; }

  std::vector<int> minibatches{25, 26, 50};
  std::vector<at::Tensor> aside;
  int count = 0;
};

TEST_F(Graphs, GiveTheSameBitsBetweenPauses) {
  std::int64_t launched = 0;
  for (const char* scheme : {"{name: one_f_one_b}", "{name: pipedream}"}) {
    Laboratory laboratory(long_training(scheme));
    const Plan& plan = plan_on(laboratory, {fake_device(0)});
    FakeGraphs graphs;
    Pauses pauses;
    const Trained graphed = trained(plan, &graphs, 1, &pauses);
    expect_equal(trained(plan, nullptr), graphed);
    EXPECT_EQ(pauses.count, 3);
    launched += graphed.result.graphs.rounds;
  }
  EXPECT_GT(launched, 0);
}

TEST_F(Graphs, AreRefusedWhereAPassGetsNumbersFromTheHost) {
  const GraphsUsed used = expect_same_with_graphs(long_training(
      "{name: pipedream}",
      ", model: {name: encoder, layers: 4, width: 8, heads: 2, feed_forward: 12, tokens: 5, "
      "dropout: 0.1}, pipeline.balance: layers"));
  EXPECT_EQ(used.rounds, 0);
  EXPECT_NE(used.refusal.find("dropout"), std::string::npos) << used.refusal;
}

TEST_F(Graphs, AreNotRecordedForAFewMiniBatches) {
  const GraphsUsed used = expect_same_with_graphs("{scheme: {name: pipedream}}");
  EXPECT_EQ(used.rounds, 0);
  EXPECT_NE(used.refusal.find("no loop"), std::string::npos) << used.refusal;
}

/// The weights become infinite amid launched rounds.
TEST_F(Graphs, EndWhereALossIsNotFinite) {
  Laboratory laboratory(long_training("{name: pipedream}"));
  const Plan& plan = plan_on(laboratory, {fake_device(0)});
  const auto failure = [&](GraphRecorder* graphs) -> std::string {
    const Stages stages = plan.stages();
    Loader loader = plan.training_loader(0, 1);
    try {
      execute(plan.training, stages,
              {.batches = loader,
               .lr = [](int minibatch) { return minibatch < 40 ? 0.01 : 1e30; },
               .minibatches_per_epoch = plan.minibatches,
               .graphs = graphs});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::NotFinite);
      return error.where() + ": " + error.message();
    }
    return "";
  };
  FakeGraphs graphs;
  const std::string expected = failure(nullptr);
  EXPECT_NE(expected.find("is nan"), std::string::npos) << expected;
  EXPECT_EQ(failure(&graphs), expected);
}

/// The stand-in must see what a graph on a GPU would do wrong.
TEST_F(Graphs, AreRecordedByAStandInThatComputesOnlyWhenTheyAreLaunched) {
  const auto options = at::TensorOptions(fake_device(0)).dtype(at::kFloat);
  const at::Tensor x = at::full({3}, 2.0, options);
  FakeGraphs graphs;
  graphs.begin(0);
  const at::Tensor y = x * x;
  x.add_(1);
  EXPECT_THROW(y.sum().item<float>(), Error);
  EXPECT_THROW(at::ones({3}).to(fake_device(0)), Error);
  const int graph = graphs.end();
  EXPECT_EQ(x.cpu().sum().item<float>(), 6);
  graphs.launch(graph);
  EXPECT_EQ(y.cpu().sum().item<float>(), 12);
  EXPECT_EQ(x.cpu().sum().item<float>(), 9);
  graphs.launch(graph);
  EXPECT_EQ(y.cpu().sum().item<float>(), 27);
  EXPECT_EQ(graphs.in_use(0).size(), 1);
}

}  // namespace
}  // namespace pipewright::test
