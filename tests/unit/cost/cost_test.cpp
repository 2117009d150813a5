// SPDX-License-Identifier: Apache-2.0
#include "core/cost/cost.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/cost/cost_table.h"
#include "core/cost/weight_moves.h"

namespace pipewright {
namespace {

LayerCost layer(double forward, std::int64_t output, std::int64_t peak) {
  return {.forward = forward,
          .backward = 2 * forward,
          .backward_input = 0.75 * forward,
          .backward_weight = 1.25 * forward,
          .update = 0.5,
          .new_version = 0.125,
          .prediction = 0.25,
          .fused_prediction = 0.0625,
          .output_bytes = output,
          .activation_bytes = 10 * output,
          .peak_bytes = peak,
          .parameter_bytes = 100,
          .buffer_bytes = 1};
}

Profile three_layers() {
  return {
      .model = "m", .input_bytes = 8, .layers = {layer(1, 4, 7), layer(2, 5, 6), layer(4, 6, 9)}};
}

TEST(StageCosts, AreSumsOverTheLayersOfAStage) {
  const std::vector<std::int64_t> balance{2, 1};
  const auto stages = stage_costs(three_layers(), balance);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].forward, 3);
  EXPECT_EQ(stages[1].backward, 8);
  EXPECT_EQ(stages[1].backward_input, 3);
  EXPECT_EQ(stages[0].backward_weight, 3.75);
  EXPECT_EQ(stages[0].update, 1);
  EXPECT_EQ(stages[0].new_version, 0.25);
  EXPECT_EQ(stages[0].prediction, 0.5);
  EXPECT_EQ(stages[0].fused_prediction, 0.125);
  EXPECT_EQ(stages[0].activation_bytes, 90);
  EXPECT_EQ(stages[0].parameter_bytes, 200);
  EXPECT_EQ(stages[0].buffer_bytes, 2);
  EXPECT_EQ(stages[1].forward, 4);
}

TEST(StageCosts, LeaveOutTheGradientOfTheData) {
  Profile profile = three_layers();
  for (LayerCost& each : profile.layers) each.parameters = 25;
  const auto stages = stage_costs(profile, std::vector<std::int64_t>{2, 1});
  EXPECT_EQ(stages[0].backward, 1.25 + 4) << "of the first layer the weights' half alone";
  EXPECT_EQ(stages[0].backward_input, 1.5) << "of the second layer";
  EXPECT_EQ(stages[0].backward_weight, 3.75);
  EXPECT_EQ(stages[0].backward_sent, 0);
  EXPECT_EQ(stages[1].backward, 8);
  EXPECT_EQ(stages[1].backward_sent, 8 - 5) << "if nobody needs it, only the weights' half is left";
  EXPECT_EQ(stages[1].backward_input_sent, 3);
}

TEST(StageCosts, LeaveItOutOfAllLayersUpToTheFirstWithParameters) {
  Profile profile = three_layers();
  profile.layers[1].parameters = 25;
  const auto two = stage_costs(profile, std::vector<std::int64_t>{2, 1});
  EXPECT_EQ(two[0].backward_input, 0);
  EXPECT_EQ(two[0].backward, 1.25 + 2.5) << "what the first took for weights that it has not";
  const auto one = stage_costs(profile, std::vector<std::int64_t>{1, 2});
  EXPECT_EQ(one[1].backward_input, 1.5 + 3) << "the first stage waits for that gradient";
}

TEST(StageCosts, NeedWhatTheirNeediestMomentNeeds) {
  const std::vector<std::int64_t> balance{2, 1};
  const StageCost stage = stage_costs(three_layers(), balance)[0];
  EXPECT_EQ(stage.peak_bytes, 6) << "the first layer's 7 are needed when the second keeps nothing";
  EXPECT_EQ(stage.peak_adding_bytes, 6);
  // The first layer's backward: its 40 and 7 beside both gradients; at the end 90, 6 and 200 would
  // be
  EXPECT_EQ(stage.freed_bytes, (90 + 6 + 200) - (40 + 7 + 200));
  EXPECT_EQ(stage.peak_bare_bytes, 4 + 50 + 6) << "what the first layer made, and the second's";
}

TEST(StageCosts, SendWhatTheLastLayerMakesToTheNextStage) {
  const std::vector<std::int64_t> balance{1, 2};
  const auto stages = stage_costs(three_layers(), balance);
  EXPECT_EQ(stages[0].input_bytes, 8);
  EXPECT_EQ(stages[0].output_bytes, 4);
  EXPECT_EQ(stages[1].input_bytes, 4);
  EXPECT_EQ(stages[1].output_bytes, 6);
}

TEST(StageCosts, OfASliceAreItsPartButForWhatIsDoneOncePerMiniBatch) {
  const StageCost whole = stage_costs(three_layers(), std::vector<std::int64_t>{2, 1})[1];
  EXPECT_EQ(cost_of_slice(whole, 1).activation_bytes, 60);
  const StageCost slice = cost_of_slice(whole, 4);
  EXPECT_EQ(slice.forward, 1);
  EXPECT_EQ(slice.backward, 2);
  EXPECT_EQ(slice.backward_input, 0.75);
  EXPECT_EQ(slice.backward_weight, 1.25);
  EXPECT_EQ(slice.input_bytes, 2);  // 5 / 4, rounded up
  EXPECT_EQ(slice.output_bytes, 2);
  EXPECT_EQ(slice.activation_bytes, 15);
  EXPECT_EQ(slice.peak_bytes, 3);
  EXPECT_EQ(slice.parameter_bytes, whole.parameter_bytes);
  EXPECT_EQ(slice.buffer_bytes, whole.buffer_bytes);
  EXPECT_EQ(slice.update, whole.update);
  EXPECT_EQ(slice.new_version, whole.new_version);
  EXPECT_EQ(slice.prediction, whole.prediction);
}

TEST(StageCosts, RefuseACutOfAnotherModel) {
  for (const std::vector<std::int64_t>& balance :
       std::vector<std::vector<std::int64_t>>{{1, 1}, {2, 2}, {3, 0}, {4, -1}, {}})
    EXPECT_THROW(stage_costs(three_layers(), balance), Error);
}

TEST(WeightTimes, ThatWereNotMeasuredFollowFromTheTensorsThatAnUpdateMoves) {
  Profile profile{.layers = {{.update = 0.7}, {.update = 0.7, .prediction = 2}, {}}};
  // Adam's update reads weights, gradient and two moments and writes all but the gradient; its
  // prediction reads three of them and writes one.
  const WeightMoves adam{.update = 7, .prediction = 4, .fused_prediction = 1};
  complete_weight_times(profile, {adam, adam, adam});
  EXPECT_DOUBLE_EQ(profile.layers[0].prediction, 0.4);
  EXPECT_DOUBLE_EQ(profile.layers[0].fused_prediction, 0.1);
  EXPECT_EQ(profile.layers[1].prediction, 2) << "this one was measured";
  EXPECT_EQ(profile.layers[1].fused_prediction, 0);
  EXPECT_EQ(profile.layers[2].prediction, 0) << "without parameters there is nothing to predict";
}

CostTable table_of(const std::string& text, int stages, Problems& problems) {
  return read_cost_table(parse_yaml(text, "c.yaml"), stages, problems);
}

TEST(CostTable, TakesOneNumberForAllStagesOrOneEach) {
  Problems problems;
  const CostTable table = table_of(
      "{samples: 4, forward: [1, 2], update: 0.5, prediction: [0, 0.3], fused_pair: [2.5, 5], "
      "input_bytes: [10, 20]}",
      2, problems);
  problems.throw_if_any();
  EXPECT_EQ(table.samples, 4);
  EXPECT_EQ(table.stages[1].forward, 2);
  EXPECT_EQ(table.stages[1].backward, 4) << "twice a forward unless it is given";
  EXPECT_EQ(table.stages[1].backward_input, 2);
  EXPECT_EQ(table.stages[0].update, 0.5);
  EXPECT_EQ(table.stages[1].update, 0.5);
  EXPECT_EQ(table.stages[0].prediction, 0);
  EXPECT_EQ(table.stages[1].prediction, 0.3);
  EXPECT_EQ(table.stages[0].fused_pair, 2.5);
  EXPECT_EQ(table.stages[1].fused_pair, 5);
  EXPECT_EQ(table.stages[0].output_bytes, 20) << "what the next stage takes";
}

TEST(CostTable, TakesInputsAndOutputsOfNeighboursFromEachOther) {
  Problems problems;
  const CostTable of_outputs = table_of("{forward: 1, output_bytes: [10, 20, 30]}", 3, problems);
  const CostTable of_both =
      table_of("{forward: 1, input_bytes: [1, 2, 3], output_bytes: [10, 20, 30]}", 3, problems);
  problems.throw_if_any();
  EXPECT_EQ(of_outputs.samples, 0);
  EXPECT_EQ(of_outputs.stages[0].fused_pair, std::nullopt) << "as the hardware says";
  for (const auto& [stage, bytes] :
       std::vector<std::pair<std::size_t, int>>{{0, 0}, {1, 10}, {2, 20}}) {
    EXPECT_EQ(of_outputs.stages[stage].input_bytes, bytes);
    EXPECT_EQ(of_both.stages[stage].input_bytes, stage + 1) << "as it is given";
  }
}

TEST(CostTable, SaysWhatIsWrong) {
  auto complaint = [](const std::string& text) {
    Problems problems;
    table_of(text, 2, problems);
    return problems.empty() ? std::string() : problems.errors()[0].message();
  };
  EXPECT_EQ(complaint("{forward: [1, 2, 3]}"),
            "costs.forward has 3 numbers for 2 stages; expected one per stage");
  EXPECT_EQ(
      complaint("{forward: slow}"),
      "costs.forward is 'slow'; expected a number of at least 0, or a list with one per stage");
  EXPECT_EQ(complaint("{forward: -1}"),
            "costs.forward is -1; expected a number of at least 0, or a list with one per stage");
  EXPECT_NE(complaint("{backward: 1}").find("forward"), std::string::npos);
  EXPECT_NE(complaint("{forward: 1, bakward: 1}").find("did you mean 'backward'"),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright
