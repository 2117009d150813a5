// SPDX-License-Identifier: Apache-2.0
// Charts: what their pictures and numbers say, and that texts in them do not act.
#include "core/page/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/page/line_looks.h"
#include "tests/unit/drawing/drawn_schedules.h"

namespace pipewright {
namespace {

constexpr const char* kHostile = "</script><b>\x1b[31m";

Picture two_curves() {
  Picture picture{.title = "stages 4", .metric = "test_accuracy", .percent = true};
  picture.curves = {{.name = "a", .points = {{1, 50, 2, 3}, {2, 60, 1, 3}}},
                    {.name = "b",
                     .points = {{1, 40, 0, 1}, {2, 45, 0, 1}},
                     .published = {{2, 46, 0, 1}},
                     .color = 1}};
  return picture;
}

TEST(Charts, HaveTheLinesOfTheirPicture) {
  const Chart chart = chart_of(two_curves());
  ASSERT_EQ(chart.lines.size(), 3u);
  EXPECT_EQ(chart.lines[2].name, "b, published");
  EXPECT_EQ(chart.lines[2].look, chart.lines[1].look) << "in the colour of ours";
  EXPECT_EQ(chart.lines[2].kind, ChartLine::Kind::Published);
  EXPECT_EQ(chart.y_label, "test_accuracy in percent");
  EXPECT_NE(chart.note.find("standard deviation"), std::string::npos);
}

TEST(Charts, DrawABandOnlyWhereThereIsAnInterval) {
  const std::string svg = chart_svg(chart_of(two_curves()));
  EXPECT_EQ(count_of("class=\"band", svg), 1u);
  EXPECT_EQ(count_of("class=\"line", svg), 2u) << "one point makes no line";
  EXPECT_EQ(count_of("class=\"mark", svg), 5u);
}

TEST(Charts, DrawBarsOverTheValuesOfAKey) {
  Picture picture = two_curves();
  picture.x.keyed = true;
  picture.curves[0].diverged = {{4, 1}};
  const Chart chart = chart_of(picture);
  const std::string svg = chart_svg(chart);
  EXPECT_EQ(count_of("class=\"band", svg), 0u);
  EXPECT_EQ(count_of("class=\"cross", svg), 1u);
  EXPECT_NE(chart.note.find("diverged"), std::string::npos);
}

TEST(Charts, TellLinesApartWithoutColours) {
  std::set<std::string> looks;
  const std::size_t several = 4 * kLineColors;
  for (std::size_t look = 0; look < several; ++look) {
    std::string sample = look_sample({.look = look});
    for (std::size_t color = 0; color < kLineColors; ++color) {
      const std::string name = "c" + std::to_string(color);
      for (std::size_t at = sample.find(name + "\""); at != std::string::npos;
           at = sample.find(name + "\""))
        sample.erase(at, name.size());
    }
    looks.insert(sample);
  }
  EXPECT_EQ(looks.size(), 16u) << "four markers with four kinds of dashes";
}

TEST(Charts, LinesOfOneColourDifferInDashesAndNeighboursInMarkers) {
  EXPECT_NE(line_attributes({.look = 0}), line_attributes({.look = kLineColors}));
  EXPECT_NE(marker({.look = 0}, 1, 1, ""), marker({.look = 1}, 1, 1, ""));
}

TEST(Charts, SayTheirNumbersInATable) {
  const std::string figure = chart_figure(chart_of(two_curves()));
  EXPECT_NE(figure.find("<td class=\"n\">60 ± 1 (3)</td>"), std::string::npos) << figure;
}

TEST(Charts, SayTheNumbersOfAPointAtTheGroupOfItsLine) {
  const std::string svg = chart_svg(chart_of(two_curves()));
  EXPECT_EQ(count_of("<g data-line=\"0\">", svg), 3u) << "its band, line and marks";
  const std::size_t marks = svg.rfind("<g data-line=\"0\">");
  const std::string own = svg.substr(marks, svg.find("</g>", marks) - marks);
  EXPECT_NE(own.find("<title>a: 60 ± 1 (3 runs), epoch 2</title>"), std::string::npos) << own;
  EXPECT_EQ(own.find("<title>b"), std::string::npos) << own;
}

TEST(Charts, LongLinesAreThinnedAndKeepTheirEnds) {
  Picture picture = two_curves();
  picture.curves[0].points.clear();
  for (int i = 0; i < 5000; ++i) picture.curves[0].points.push_back({i * 1., i * 2., 0, 1});
  const Chart chart = chart_of(picture);
  EXPECT_LE(chart.lines[0].points.size(), 1000u);
  EXPECT_EQ(chart.lines[0].points.front().x, 0);
  EXPECT_EQ(chart.lines[0].points.back().x, 4999);
}

TEST(Charts, TheLastPointOfALineOfAnyLengthSaysItsNumbers) {
  for (const int points : {1, 59, 60, 61, 100, 119, 5000}) {
    Picture picture = two_curves();
    picture.curves[0].points.clear();
    for (int i = 0; i < points; ++i) picture.curves[0].points.push_back({i * 1., 0.5, 0, 1});
    const std::string drawn = chart_svg(chart_of(picture));
    EXPECT_NE(drawn.find(concat(", epoch ", points - 1, "<")), std::string::npos) << points;
  }
}

TEST(Charts, NamePointsOfAFrontBesideThem) {
  Chart chart{.title = {}, .x_label = "hours of training on a machine with a long name, h"};
  chart.named = true;
  chart.lines.push_back(
      {.points = {{.x = 1, .y = 1, .name = "a<b"}, {.x = 9, .y = 2, .name = "c"}}});
  const std::string svg = chart_svg(chart);
  EXPECT_NE(svg.find("text-anchor=\"start\">a&lt;b</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("text-anchor=\"end\">c</text>"), std::string::npos) << "within the picture";
  EXPECT_NE(svg.find(">hours of training on a machine with a long name, h<"), std::string::npos);
}

TEST(Charts, LeaveOutWhatIsNotFinite) {
  Picture picture = two_curves();
  picture.curves[0].points[0].mean = HUGE_VAL;
  EXPECT_EQ(chart_of(picture).lines[0].points.size(), 1u);
}

TEST(Charts, TextsFromOutsideDoNotAct) {
  Picture picture = two_curves();
  picture.title = picture.metric = picture.curves[0].name = kHostile;
  picture.x = {.label = kHostile, .keyed = true, .names = {kHostile, kHostile, kHostile}};
  const std::string figure = chart_figure(chart_of(picture));
  for (const char* acts : {"</script", "<b>", "\x1b"})
    EXPECT_EQ(figure.find(acts), std::string::npos) << acts;
}

Picture curve_with_a_hole() {
  Picture picture{.metric = "test_accuracy", .percent = true};
  picture.curves = {{.name = "a",
                     .points = {{1, 50, 2, 3}, {2, 60, 1, 3}, {4, 55, 1, 2}, {5, 50, 1, 3}},
                     .diverged = {{3, 3}, {4, 1}}}};
  return picture;
}

TEST(Charts, BreakALineWhereAllOfItsRunsDiverged) {
  const Chart chart = chart_of(curve_with_a_hole());
  const std::string svg = chart_svg(chart);
  const std::size_t line = svg.find("class=\"line"), band = svg.find("class=\"band");
  ASSERT_NE(line, std::string::npos);
  ASSERT_NE(band, std::string::npos);
  const std::string drawn = svg.substr(line, svg.find("/>", line) - line);
  EXPECT_EQ(count_of("M", drawn), 2u) << drawn;
  EXPECT_EQ(count_of("L", drawn), 2u) << drawn;
  EXPECT_EQ(count_of("Z", svg.substr(band, svg.find("/>", band) - band)), 2u);
  std::vector<bool> broken;
  for (const ChartPoint& point : chart.lines[0].points) broken.push_back(point.broken);
  EXPECT_EQ(broken, (std::vector{false, false, true, false}))
      << "where one run of three diverged, the line goes on";
}

TEST(Charts, CountRunsAndThoseThatDivergedInTheirLegend) {
  const std::string figure = chart_figure(chart_of(curve_with_a_hole()));
  const std::size_t legend = figure.find("<ul class=\"legend\">");
  ASSERT_NE(legend, std::string::npos);
  EXPECT_NE(figure.find("<span>a (3 runs, 4 diverged)</span>", legend), std::string::npos)
      << figure;
}

TEST(Charts, ThinnedLinesKeepTheirBreaks) {
  Picture picture = curve_with_a_hole();
  picture.curves[0].points.clear();
  for (int i = 0; i < 5000; ++i) picture.curves[0].points.push_back({i * 1., i * 2., 0, 1});
  picture.curves[0].diverged = {{1234.5, 1}, {2000, 1}};
  std::vector<double> broken;
  const Chart chart = chart_of(picture);
  for (const ChartPoint& point : chart.lines[0].points)
    if (point.broken) broken.push_back(point.x);
  ASSERT_EQ(broken.size(), 1u) << "a run that diverged where others have a point breaks nothing";
  EXPECT_GE(broken[0], 1235);
  EXPECT_LT(broken[0], 1235 + 5000 / 399 + 1);
}

TEST(Charts, OneSeriesHasOneLookInAllChartsOfAPage) {
  Picture first = two_curves(), second = two_curves();
  std::swap(second.curves[0], second.curves[1]);
  second.curves[1].name = "a = c";
  second.curves[1].series = "a";
  std::vector<Chart> charts{chart_of(first), chart_of(second)};
  SeriesLooks looks;
  for (Chart& chart : charts) looks.give(chart);
  EXPECT_EQ(charts[0].lines[0].look, charts[1].lines[2].look) << "a";
  EXPECT_EQ(charts[0].lines[1].look, charts[1].lines[0].look) << "b";
  EXPECT_EQ(charts[1].lines[0].look, charts[1].lines[1].look) << "b, published";
  EXPECT_NE(charts[0].lines[0].look, charts[0].lines[1].look);
}

TEST(Charts, ASeriesThatNamesLessLooksLikeOneBeforeIt) {
  Chart curves{.lines = {{.name = "a", .series = "lr 0.1, gpipe"},
                         {.name = "b", .series = "lr 0.1, pipedream"}}};
  Chart against{.lines = {{.name = "a", .series = "pipedream"}, {.name = "b", .series = "gpipe"}}};
  SeriesLooks looks;
  looks.give(curves);
  looks.give(against);
  EXPECT_EQ(against.lines[0].look, curves.lines[1].look);
  EXPECT_EQ(against.lines[1].look, curves.lines[0].look);
}

TEST(Charts, TwoLinesOfOneSeriesDifferInTheirLooks) {
  Chart chart{.lines = {{.name = "x, 1", .series = "x"}, {.name = "x, 2", .series = "x"}}};
  SeriesLooks looks;
  looks.give(chart);
  EXPECT_NE(chart.lines[0].look, chart.lines[1].look);
}

}  // namespace
}  // namespace pipewright
