// SPDX-License-Identifier: Apache-2.0
// The SVG drawings. The tables of weights are those of SpecTrain's and PipeDream's papers.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "core/drawing/render.h"
#include "core/drawing/render_simulation.h"
#include "tests/unit/drawing/drawn_schedules.h"

namespace pipewright {
namespace {

/// Elements closed in the order they were opened, and no bare & or < in text.
testing::AssertionResult well_formed(const std::string& xml) {
  static const std::regex tag("<(/?)([a-z]+)((?: [a-zA-Z0-9:-]+=\"[^\"<&]*\")*)(/?)>");
  std::vector<std::string> open;
  std::string text;
  auto last = xml.cbegin();
  for (std::sregex_iterator it(xml.begin(), xml.end(), tag), end; it != end; ++it) {
    const std::smatch& match = *it;
    text.append(last, match[0].first);
    last = match[0].second;
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2])
        return testing::AssertionFailure() << "unexpected " << match[0];
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
  }
  text = std::regex_replace(text, std::regex("&(amp|lt|gt|quot);"), "");
  if (!open.empty()) return testing::AssertionFailure() << open.back() << " stays open";
  if (text.find_first_of("<&") != std::string::npos)
    return testing::AssertionFailure()
           << "not escaped: " << text.substr(text.find_first_of("<&"), 40);
  return testing::AssertionSuccess();
}

TEST(RenderSvg, IsWellFormedWhateverTheTitle) {
  const std::string svg = render_svg(prove(pipedream(4, 4)), "a <b> & \"c\"\x01 'd'");
  EXPECT_TRUE(well_formed(svg));
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;\\x01 'd'"), std::string::npos);
  EXPECT_TRUE(well_formed(render_svg(prove(pairwise()), "")));
  EXPECT_TRUE(
      well_formed(render_svg(prove(evaluation_schedule({.stages = 2, .minibatches = 3})), "e")));
  EXPECT_TRUE(well_formed(render_weights_svg(prove(spectrain_2(4, 9)), 5, "<&>")));
}

TEST(RenderSvg, NeedsNothingFromOutside) {
  const std::string svg =
      render_svg(prove(pipedream(4, 4)), "t") + render_weights_svg(prove(pipedream(4, 4)), 2, "t");
  EXPECT_EQ(count_of("http", svg), 2U);  // the two name spaces
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("@import"), std::string::npos);
}

TEST(RenderSvg, HasABoxPerPassAndATickPerUpdate) {
  const Schedule schedule = pipedream(3, 5);
  const std::string svg = render_svg(prove(schedule), "t");
  EXPECT_EQ(count_of("<title>forward of mini-batch", svg), 15U);
  EXPECT_EQ(count_of("<title>backward of mini-batch", svg), 15U);
  EXPECT_EQ(count_of("stroke=\"#ee7b1c\"", svg), 15U + 1);  // and the legend's
  EXPECT_NE(svg.find("forward of mini-batch 3, stage 0; weights 1; slots"), std::string::npos);
}

TEST(RenderSvg, GoesOnBelowWhenThePageIsNotWideEnough) {
  const std::string svg = render_svg(
      prove(pipeline_schedule({.stages = 2, .microbatches = 8, .minibatches = 12}, {})), "t", 0);
  EXPECT_GT(count_of(">worker 1<", svg), 2U);
  std::smatch width;
  ASSERT_TRUE(std::regex_search(svg, width, std::regex("width=\"([0-9]+)")));
  EXPECT_LT(std::stoi(width[1]), 1800);
}

TEST(RenderSvg, StopsAfterSoManyMiniBatches) {
  const std::string svg = render_svg(prove(pipedream(2, 500)), "t", 5);
  EXPECT_NE(svg.find("mini-batch 4, stage 0"), std::string::npos);
  EXPECT_EQ(svg.find("mini-batch 8,"), std::string::npos);
  EXPECT_NE(svg.find("…"), std::string::npos);
}

TEST(RenderSvg, EqualReplicasAreDrawnOnceInSlotsAndToScale) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .replicas = 3, .microbatches = 2, .minibatches = 2}, {});
  const std::string rest = "and 4 workers like these, of further replicas<";
  const std::string grid = render_svg(prove(schedule), "t", 0);
  EXPECT_EQ(count_of(">worker ", grid), 2U);
  EXPECT_EQ(count_of(rest, grid), 1U);

  std::vector<std::vector<Span>> spans;
  for (const auto& worker : schedule.workers)
    spans.emplace_back(worker.size(), Span{.begin = 1, .end = 2});
  const TimelineMark mark{.worker = 5, .end = 1, .fill = "#000000", .name = "of worker 5"};
  const TimelinePart part{"simulated", spans, {mark}};
  const std::string same = render_timelines_svg(schedule, {part}, "t", 2, nullptr);
  EXPECT_EQ(count_of(">worker ", same), 2U);
  EXPECT_EQ(count_of("simulated; " + rest, same), 1U);
  EXPECT_EQ(count_of("of worker 5", same), 0U);

  spans[3].back().end = 1.5;
  const std::string other = render_timelines_svg(schedule, {part}, "t", 2, nullptr);
  EXPECT_EQ(count_of(">worker ", other), 3U);
  EXPECT_EQ(count_of(">worker 3<", other), 1U);
}

/// The rows under the heads pass, reads, stands for, applied to and staleness: texts at their x.
std::vector<std::vector<std::string>> table_of(const std::string& svg) {
  static const std::regex text("<text x=\"([0-9.]+)\"[^>]*>([^<]*)</text>");
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) {
    const std::string x = (*it)[1], word = (*it)[2];
    const bool head = word == "pass" || word == "reads" || word == "stands for" ||
                      word == "applied to" || word == "staleness";
    if (head) {
      columns.push_back(x);
      continue;
    }
    const auto column = std::find(columns.begin(), columns.end(), x);
    if (column == columns.begin() && !columns.empty()) rows.emplace_back();
    if (column != columns.end()) rows.back().push_back(word);
  }
  return rows;
}

using Rows = std::vector<std::vector<std::string>>;

/// SpecTrain's worked table: mini-batch i = 3 (the papers' fourth).
TEST(RenderWeights, SpecTrainsTableForTwoStages) {
  EXPECT_EQ(table_of(render_weights_svg(prove(spectrain(2, 6)), 3, "v1")),
            (Rows{{"F", "2 + 1", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "3", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"}}));
}

TEST(RenderWeights, SpecTrainsTableForThreeStages) {
  EXPECT_EQ(table_of(render_weights_svg(prove(spectrain(3, 6)), 3, "v1")),
            (Rows{{"F", "1 + 2", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "2 + 1", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "3 + 1", "4", "3", "−1"},
                  {"B", "3 + 1", "4", "3", "−1"}}));
}

TEST(RenderWeights, SpecTrainsTableForFourStages) {
  EXPECT_EQ(table_of(render_weights_svg(prove(spectrain(4, 8)), 3, "v1")),
            (Rows{{"F", "0 + 3", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "1 + 2", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"},
                  {"F", "2 + 2", "4", "3", "−1"},
                  {"B", "3 + 1", "4", "3", "−1"},
                  {"F", "3 + 1", "4", "3", "−1"},
                  {"B", "3 + 1", "4", "3", "−1"}}));
}

TEST(RenderWeights, SpecTrainsSecondVersionReusesThePrediction) {
  const std::string svg = render_weights_svg(prove(spectrain_2(3, 6)), 3, "v2");
  EXPECT_EQ(table_of(svg), (Rows{{"F", "1 + 2", "3", "3", "0"},
                                 {"B", "1 + 2", "3", "3", "0"},
                                 {"F", "2 + 1", "3", "3", "0"},
                                 {"B", "2 + 1", "3", "3", "0"},
                                 {"F", "3", "3", "3", "0"},
                                 {"B", "3", "3", "3", "0"}}));
  EXPECT_NE(svg.find("the very weights of the forward"), std::string::npos);
}

TEST(RenderWeights, PipeDreamIsStale) {
  EXPECT_EQ(table_of(render_weights_svg(prove(pipedream(3, 6)), 3, "pipedream")),
            (Rows{{"F", "1", "1", "3", "2"},
                  {"B", "1", "1", "3", "2"},
                  {"F", "2", "2", "3", "1"},
                  {"B", "2", "2", "3", "1"},
                  {"F", "3", "3", "3", "0"},
                  {"B", "3", "3", "3", "0"}}));
}

TEST(RenderWeights, MicroBatchesThatReadOtherVersionsHaveTheirOwnRow) {
  const Schedule schedule =
      pipeline_schedule({.stages = 2, .microbatches = 2, .minibatches = 4}, {.flush = false});
  EXPECT_EQ(table_of(render_weights_svg(prove(schedule), 2, "t")),
            (Rows{{"F", "1", "1", "2", "1"},
                  {"F", "2", "2", "2", "0"},
                  {"B", "2", "2", "2", "0"},
                  {"F", "2", "2", "2", "0"},
                  {"B", "2", "2", "2", "0"}}));
}

TEST(RenderWeights, DrawsAMiniBatchThatIsNotThere) {
  EXPECT_TRUE(well_formed(render_weights_svg(prove(pipedream(3, 2)), 99, "t")));
}

}  // namespace
}  // namespace pipewright
