// SPDX-License-Identifier: Apache-2.0
// What is said of edges.
#include <gtest/gtest.h>

#include "core/stability/stability_report.h"
#include "tests/unit/stability/dynamics.h"

namespace pipewright {
namespace {

Dynamics pipedream_with_momentum() {
  return {
      .recurrence = recurrence_of("pipedream", "{}", 4), .rule = momentum_rule(0.9), .lr = 0.03};
}

TEST(StabilityReport, AnswersWithOneSentenceOnTheStageThatIsFarthestPast) {
  StabilityReport report = stability_report(pipedream_with_momentum());
  report.measured = {.stages = {{0, 4.1}, {3, 4.1}}, .model = {}, .when = "epoch 1, mini-batch 5"};
  EXPECT_EQ(
      measured_text(report),
      "At the curvature of this run (lr 0.03, epoch 1, mini-batch 5), lr 0.03 × λ 4.1 = 0.123 "
      "is past stage 0's edge 0.03478 (delay 3, momentum 0.9); stage 3 (delay 0) allows 3.8; "
      "the measured stages would be stable up to lr 0.008484.\n");
  report.measured.stages = {{0, 0.1}, {1, 0.9}, {2, 0.1}, {3, 100}};
  EXPECT_EQ(measured_text(report),
            "At the curvature of this run (lr 0.03, epoch 1, mini-batch 5), lr 0.03 × λ 100 = 3 is "
            "78.95 % of stage 3's edge 3.8 (delay 0, momentum 0.9); all stages would be stable up "
            "to lr 0.038.\n");
  report.measured.furthest = {0, 2, "epoch 1, mini-batch 5"};
  EXPECT_EQ(measured_text(report).find("Furthest"), std::string::npos);
  report.measured.furthest = {0, 2, "epoch 0, mini-batch 7"};
  EXPECT_TRUE(measured_text(report).ends_with(
      "\nFurthest it was in epoch 0, mini-batch 7, where lr 0.03 × λ 2 = 0.06 is past stage 0's "
      "edge 0.03478 (delay 3, momentum 0.9); stage 3 (delay 0) allows 3.8.\n"))
      << measured_text(report);
}

TEST(StabilityReport, SaysWhichRatesAreStableWithTheirOwnDecay) {
  Dynamics dynamics = delayed(0, momentum_rule(0.5));
  dynamics.lr = 0.01;
  dynamics.rule.l2 = 0.5;
  StabilityReport report = stability_report(dynamics);
  report.measured = {.stages = {{0, 5}}, .model = {}, .when = "epoch 0, mini-batch 1"};
  EXPECT_NE(measured_text(report).find("all stages would be stable up to lr 0.5455."),
            std::string::npos)  // 3 / (5 + 0.5)
      << measured_text(report);
  EXPECT_NE(stability_text(report).find("0.5455"), std::string::npos) << stability_text(report);
}

TEST(StabilityReport, SaysThatAMomentumOfOneOrMoreIsNeverStable) {
  const Dynamics dynamics{
      .recurrence = recurrence_of("pipedream", "{}", 2), .rule = momentum_rule(1.9), .lr = 0.03};
  EXPECT_EQ(stability_line(stability_report(dynamics)),
            "no learning rate is stable: momentum 1.9 is not below 1");
}

TEST(StabilityReport, NamesTheTightestStageInOneLine) {
  EXPECT_EQ(stability_line(stability_report(pipedream_with_momentum())),
            "lr × curvature up to 0.03478, least at stage 0 (delay 3, momentum 0.9): curvature up "
            "to 1.159 at lr 0.03");
}

TEST(StabilityReport, EndsWithOneSentenceThatAnswers) {
  StabilityReport report = stability_report(pipedream_with_momentum());
  // 3.8 / 0.034783 = 109.2
  const std::string alone =
      "In short: lr × curvature up to 0.03478, least at stage 0 (delay 3, momentum 0.9): curvature "
      "up to 1.159 at lr 0.03; stage 3 (delay 0) bears 109.2 times as much";
  EXPECT_EQ(answer_text(report), alone + ".\n");
  report.coupled = CoupledStability{.edge = 0.02};
  EXPECT_EQ(answer_text(report), alone +
                                     "; the whole pipeline on this Hessian is stable up to lr "
                                     "0.02, and lr 0.03 is beyond.\n");
  report.measured = {.stages = {{0, 4.1}}, .model = {}, .when = "epoch 1, mini-batch 5"};
  EXPECT_EQ(answer_text(report), measured_text(report));
}

TEST(StabilityReport, NamesPredictionsOfForwardAndBackward) {
  const auto rule = [](const char* scheme, const char* options, int microbatches = 1) {
    return stability_report({.recurrence = recurrence_of(scheme, options, 3, microbatches),
                             .rule = momentum_rule(0.9)})
        .stages[0]
        .rule;
  };
  EXPECT_EQ(rule("pipedream", "{}"), "none");
  EXPECT_EQ(rule("spectrain", "{version: 2}"), "+2 optimizer");
  EXPECT_EQ(rule("pipeoptim", "{velocity: geometric}"), "forward +2 geometric");
  EXPECT_EQ(rule("pipemare", "{}"), "backward -2 drift");
  EXPECT_EQ(rule("pipeoptim", "{}", 2), "forward +1 optimizer");
}

TEST(StabilityReport, AsAValueHasTheKeysThatProgramsRead) {
  StabilityReport report = stability_report(pipedream_with_momentum());
  report.coupled = CoupledStability{.edge = 0.5, .spectral_radius = 0.75};
  const Value value = stability_value(report);
  const Value& first = value.find("stages")->items.at(0);
  EXPECT_EQ(first.find("stage")->integer, 0);
  EXPECT_EQ(first.find("forward_delay")->integer, 3);
  EXPECT_EQ(first.find("backward_delay")->integer, 3);
  EXPECT_EQ(first.find("rule")->text, "none");
  EXPECT_EQ(first.find("edge")->number, report.stages[0].edge);
  EXPECT_EQ(value.find("coupled_edge")->number, 0.5);
  EXPECT_EQ(value.find("spectral_radius")->number, 0.75);
}

TEST(Hessians, OfNoMinimumAreRefused) {
  EXPECT_EQ(fault_of({{2, 1}, {1, 2}}), "");
  EXPECT_EQ(fault_of({{1, 1}, {1, 1}}), "");
  EXPECT_NE(fault_of({{1, 2}, {2, 1}}).find("negative eigenvalue -1"), std::string::npos);
  EXPECT_NE(fault_of({{1, 2}, {0, 1}}).find("not symmetric: row 0, column 1 is 2"),
            std::string::npos);
  EXPECT_NE(fault_of({{0, 0}, {0, 0}}), "");
}

}  // namespace
}  // namespace pipewright
