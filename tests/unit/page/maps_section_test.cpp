// SPDX-License-Identifier: Apache-2.0
// Maps over two settings: numbers with tints, and what diverged.
#include <gtest/gtest.h>

#include <cmath>

#include "core/page/sections.h"

namespace pipewright {
namespace {

HeatMap small_map() {
  HeatMap map{.metric = "test_accuracy", .percent = true};
  map.x = {.label = "pipeline.stages", .names = {}};
  map.y = {.label = "scheme.name", .names = {"gpipe", "<b>"}};
  map.cells = {{.x = 2, .y = 0, .mean = 90, .runs = 3},
               {.x = 4, .y = 0, .mean = 10, .runs = 1, .diverged = 2},
               {.x = 2, .y = 1, .mean = std::nan(""), .runs = 0, .diverged = 3}};
  return map;
}

TEST(Maps, HaveACellForEachPairOfValues) {
  Report report;
  report.maps = {small_map()};
  const std::string body = maps_section(report).body;
  const std::size_t above = body.find("<th scope=\"row\">&lt;b&gt;</th>"),
                    below = body.find("<th scope=\"row\">gpipe</th>");
  ASSERT_NE(above, std::string::npos) << body;
  ASSERT_NE(below, std::string::npos) << body;
  EXPECT_LT(above, below) << "the y-axis goes up";
  EXPECT_EQ(body.substr(above, body.find("</tr>", above) - above),
            "<th scope=\"row\">&lt;b&gt;</th><td class=\"n\">× 3 diverged</td>"
            "<td class=\"n\">–</td>");
  EXPECT_EQ(body.substr(below, body.find("</tr>", below) - below),
            "<th scope=\"row\">gpipe</th><td class=\"n\"><span class=\"heat h7\">90 (3)</span></td>"
            "<td class=\"n\"><span class=\"heat h0\">10</span> × 2 diverged</td>");
  EXPECT_NE(body.find("test_accuracy in percent (number of runs)"), std::string::npos) << body;
}

TEST(Maps, SayInWhatTheRunsOfACellDiffer) {
  Report report;
  report.maps = {small_map()};
  report.maps_note = "Means mix optimizer.lr.";
  EXPECT_NE(maps_section(report).body.find("<p class=\"quiet\">Means mix optimizer.lr.</p>"),
            std::string::npos);
}

TEST(Maps, OnesThatAreTooLargeAreNamed) {
  Report report;
  report.maps = {small_map()};
  report.maps[0].y.names.clear();
  for (int i = 0; i < 2501; ++i)
    report.maps[0].cells.push_back({.x = 2, .y = static_cast<double>(i), .mean = 1, .runs = 1});
  EXPECT_NE(maps_section(report).body.find("too large for this page"), std::string::npos);
}

}  // namespace
}  // namespace pipewright
