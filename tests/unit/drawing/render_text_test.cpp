// SPDX-License-Identifier: Apache-2.0
// What the terminal shows: the grid and the table of versions; the cases of tests/cases/schedules
// hold whole texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <regex>

#include "core/drawing/render.h"
#include "tests/unit/drawing/drawn_schedules.h"

namespace pipewright {
namespace {

std::size_t columns_of(const std::string& line) {
  return as_size(static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  })));
}

TEST(RenderText, WrapsAtTheWidthAndRepeatsTheHeader) {
  const std::string text = render_text(pipedream(4, 12), {.width = 60});
  for (const std::string& line : split(text, '\n')) EXPECT_LE(columns_of(line), 60U) << line;
  EXPECT_EQ(count_of("slot ", text), 4U);
  EXPECT_EQ(count_of("worker 3", text), 4U);
  EXPECT_NE(text.find("\nslot "), std::string::npos);
}

TEST(RenderText, DrawsEveryActionWhateverTheWidth) {
  const Schedule schedule = pipedream(3, 6);
  for (const int width : {1, 14, 23, 40, 80}) {
    const std::string text = render_text(schedule, {.width = width});
    EXPECT_EQ(count_of("F5", text), 3U) << text;
    EXPECT_EQ(count_of("B5", text), 3U) << text;
    EXPECT_EQ(count_of("|", text), 18U + 1) << text;  // and one in the legend
  }
}

TEST(RenderText, ACutIsNotDrawnAsADrain) {
  const std::string text = render_text(pipedream(4, 100), {.minibatches = 6});
  const std::vector<std::string> lines = split(text, '\n');
  EXPECT_TRUE(lines[1].ends_with("B5---|")) << text;
  EXPECT_TRUE(lines[4].ends_with("B7---|")) << text;
  EXPECT_NE(text.find("6 of 100 mini-batches"), std::string::npos);
}

TEST(RenderText, MarksTheCulprit) {
  const ActionPlace forward{1, 4};
  const std::string text = render_text(pipedream(3, 6), {.culprit = &forward});
  EXPECT_NE(text.find("▶F2◀B1---|"), std::string::npos) << text;
  const ActionPlace elsewhere{9, 0};
  EXPECT_EQ(render_text(pipedream(3, 6), {.culprit = &elsewhere}), render_text(pipedream(3, 6)));
}

TEST(RenderText, MakesRoomForACulpritThatTakesNoTime) {
  const ActionPlace update{2, 2};
  const std::string expected = R"(slot      0                  5              10
worker 0  F0 F1 .  .  .      .  .  B0---|.  B1---|
worker 1  .  F0 F1 .  .      B0---|.  B1---|.  .
worker 2  .  .  F0 B0---▶U0◀ F1 B1---|.  .  .  .
F forward   B backward   | update   . idle
)";
  EXPECT_EQ(render_text(pipedream(3, 2), {.culprit = &update}), expected);
}

TEST(RenderText, DrawsThePartAroundALateCulprit) {
  const ActionPlace late{0, 150};
  const std::string text = render_text(pipedream(4, 100), {.minibatches = 6, .culprit = &late});
  EXPECT_NE(text.find("▶"), std::string::npos);
  EXPECT_EQ(text.find("F9 "), std::string::npos) << text;
  EXPECT_LT(columns_of(split(text, '\n')[1]), 200U);
}

TEST(RenderText, ActionsThatNeverStartStandUnderQuestionMarks) {
  Schedule schedule = pipedream(3, 3);
  std::swap(schedule.workers[2][1], schedule.workers[2][3]);  // B0 after F1, so F1 waits for ever
  std::swap(schedule.workers[1][0], schedule.workers[1][2]);  // B0 before its F0
  const ActionPlace culprit{1, 0};
  const std::string expected = R"(slot      0           ?  ?  ?  ?  ?  ?  ?  ?  ?
worker 0  F0 F1 F2    B0 U0 B1 U1 B2 U2
worker 1  .  .  .    ▶B0◀F1 F0 U0 F2 B1 U1 B2 U2
worker 2  .  .  .     F0 F1 U0 B0 B1 U1 F2 B2 U2
F forward   B backward   | update   . idle
)";
  EXPECT_EQ(render_text(schedule, {.culprit = &culprit}), expected);
}

TEST(RenderText, NeverThrows) {
  EXPECT_EQ(render_text(Schedule{}), "slot\n. idle\n");
  Schedule schedule = pipedream(2, 2);
  for (Action& action : schedule.workers[1]) action.loss = action.stage = -5;
  schedule.workers.emplace_back();
  EXPECT_NE(render_text(schedule, {.width = 10}).find("worker 2"), std::string::npos);
}

TEST(RenderText, NeverThrowsWhateverIsWrong) {
  std::mt19937 random(1);
  auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    Schedule schedule = pairwise();
    for (int change = below(5); change >= 0; --change) {
      auto& worker = schedule.workers[as_size(below(3))];
      if (worker.empty()) continue;
      Action& action = worker[as_size(below(worker.size()))];
      switch (below(6)) {
        case 0: action.stage = below(5) - 1; break;
        case 1: action.minibatch = below(5) - 1; break;
        case 2: action.kind = static_cast<ActionKind>(below(6)); break;
        case 3: worker.erase(worker.begin() + below(worker.size())); break;
        case 4: std::swap(action, worker[as_size(below(worker.size()))]); break;
        case 5: schedule.shape.replicas = below(4); break;
      }
    }
    const ActionPlace culprit{below(4) - 1, below(12) - 1};
    const RenderOptions options{
        .width = below(60), .minibatches = below(3), .color = below(2) == 1, .culprit = &culprit};
    EXPECT_FALSE(render_text(schedule, options).empty());
  }
}

TEST(RenderText, ColorsOnlyWhenAsked) {
  const Schedule schedule = pipedream(2, 2);
  EXPECT_EQ(render_text(schedule).find('\033'), std::string::npos);
  const std::string colored = render_text(schedule, {.color = true});
  EXPECT_NE(colored.find("\033[34mF0\033[0m "), std::string::npos) << colored;
  EXPECT_EQ(std::regex_replace(colored, std::regex("\033\\[[0-9]*m"), ""), render_text(schedule));
}

TEST(RenderVersions, ReplicasAreListedOnce) {
  const std::string text =
      render_versions(prove(pipeline_schedule({.stages = 1, .replicas = 4, .minibatches = 2}, {})));
  EXPECT_EQ(count_of("\n0  ", text), 1U) << text;
}

}  // namespace
}  // namespace pipewright
