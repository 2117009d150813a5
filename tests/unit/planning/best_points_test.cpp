// SPDX-License-Identifier: Apache-2.0
// Which points are called the best, and how tables and maps say so.
#include "core/planning/best_points.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/drawing/render_page.h"
#include "core/planning/print_points.h"

namespace pipewright {
namespace {

constexpr const char* kBandwidth = "hardware.between.bandwidth_gb_per_s";

/// A sweep over scheme, micro-batches and bandwidth, without points yet.
SimulatedSweep empty_sweep() {
  return {.name = "plan", .keys = {"scheme.name", "pipeline.microbatches", kBandwidth}};
}

SimulatedPoint& add(SimulatedSweep& sweep, const std::string& scheme, int microbatches,
                    double bandwidth, double pace, std::int64_t bytes = 100, int workers = 4) {
  SimulatedPoint& point = sweep.points.emplace_back();
  point.title = concat(scheme, " ", microbatches, " ", bandwidth);
  point.candidate = scheme;
  point.values = {Value::of(scheme), Value::of(microbatches), Value::of(bandwidth)};
  point.state = SimulatedPoint::State::Fits;
  point.workers = workers;
  point.minibatches = 6;
  point.steady = true;
  point.seconds = 1 / pace;
  point.samples_per_second = pace;
  point.peaks = {bytes, bytes / 2};
  return point;
}

BestCell only_cell(const BestPoints& best) {
  return best.maps.at(0).cells.at(0).at(0);
}

TEST(BestPoints, AreTheFastestOfEachCombination) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 5);
  add(sweep, "gpipe", 8, 10, 7);
  add(sweep, "zb_h1", 8, 10, 6);
  add(sweep, "gpipe", 4, 2, 1);
  add(sweep, "zb_h1", 4, 2, 3);
  const BestPoints best = best_points(sweep);
  EXPECT_EQ(best.x, kBandwidth);
  EXPECT_EQ(best.y, "workers");
  EXPECT_EQ(best.x_values, (std::vector<std::string>{"2", "10"}));  // ascending numbers
  EXPECT_EQ(best.y_values, std::vector<std::string>{"4"});
  ASSERT_EQ(best.maps.size(), 1U);
  EXPECT_EQ(best.maps[0].cells[0][0].best, 4U);
  EXPECT_EQ(best.maps[0].cells[0][1].best, 1U);
  EXPECT_EQ(choices_text(sweep, best, 1), "M 8");
}

TEST(BestPoints, OfEqualPaceAreThoseWithLessMemory) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 5 * (1 + 1e-9), 200);
  add(sweep, "one_f_one_b", 4, 10, 5, 100);
  const BestPoints best = best_points(sweep);
  EXPECT_EQ(only_cell(best).best, 1U);
  EXPECT_EQ(only_cell(best).near, std::vector<std::size_t>{0});
}

TEST(BestPoints, NameOtherCandidatesWithinOnePercentOnce) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 100);
  add(sweep, "zb_h1", 4, 10, 99.2);
  add(sweep, "zb_h1", 8, 10, 99.5);
  add(sweep, "gpipe", 8, 10, 99.9);  // the best's own
  add(sweep, "pipedream", 4, 10, 98.9);
  const BestCell cell = only_cell(best_points(sweep));
  EXPECT_EQ(cell.best, 0U);
  EXPECT_EQ(cell.near, std::vector<std::size_t>{2});
  EXPECT_FALSE(cell.alone);
}

TEST(BestPoints, AreNoneThatDoNotFit) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 100).state = SimulatedPoint::State::TooLarge;
  add(sweep, "zb_h1", 4, 10, 50);
  EXPECT_EQ(only_cell(best_points(sweep)).best, 1U);
  EXPECT_TRUE(only_cell(best_points(sweep)).alone);
  sweep.points[1].state = SimulatedPoint::State::Refused;
  EXPECT_FALSE(only_cell(best_points(sweep)).best.has_value());
}

TEST(BestPoints, OfOtherHardwareHaveAMapOfTheirOwn) {
  SimulatedSweep sweep = empty_sweep();
  sweep.keys.emplace_back("hardware.devices.memory_gib");
  add(sweep, "gpipe", 4, 10, 5).values.push_back(Value::of(8));
  add(sweep, "gpipe", 4, 10, 5).values.push_back(Value::of(16));
  const BestPoints best = best_points(sweep);
  ASSERT_EQ(best.maps.size(), 2U);
  EXPECT_EQ(conditions_text(best, best.maps[1]), "memory_gib 16");
}

TEST(BestPoints, AxesCanBeChosenAmongTheKeysThatVary) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 5);
  add(sweep, "gpipe", 8, 10, 6);
  const BestPoints best = best_points(sweep, "pipeline.microbatches", kBandwidth);
  EXPECT_EQ(best.maps.at(0).cells.at(0).size(), 2U);
  EXPECT_TRUE(best.choices.empty());
  EXPECT_THROW(best_points(sweep, "pipeline.stagess"), Error);
}

TEST(BestPoints, AreMarkedInTheCsvWithAllFigures) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 100).bytes_per_minibatch = 7;
  add(sweep, "zb_h1", 4, 10, 99.5);
  SimulatedPoint& refused = add(sweep, "zb_h2", 4, 10, 1);
  refused.state = SimulatedPoint::State::Refused;
  refused.reason = "no, and \"no\"";
  EXPECT_EQ(sweep_csv(sweep, best_points(sweep)),
            concat("scheme.name,pipeline.microbatches,", kBandwidth,
                   ",candidate,workers,state,seconds_per_minibatch,samples_per_second,bubble,"
                   "peak_bytes,peak_bytes_of_workers,bytes_per_minibatch,minibatches,steady,mark,"
                   "reason\n"
                   "gpipe,4,10,gpipe,4,fits,0.01,100,0,100,100 50,7,6,yes,best,\n"
                   "zb_h1,4,10,zb_h1,4,fits,",
                   1 / 99.5,
                   ",99.5,0,100,100 50,0,6,yes,within 1 %,\n"
                   "zb_h2,4,10,zb_h2,4,refused,,,,,,,,,,\"no, and \"\"no\"\"\"\n"));
}

TEST(BestMap, NamesTheBestAndWhatIsNearInEachCell) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 100);
  add(sweep, "zb_h1", 4, 10, 99.5);
  add(sweep, "pipedream", 4, 20, 50).state = SimulatedPoint::State::TooLarge;
  const std::string svg = render_best_map(sweep, best_points(sweep), "A <plan>");
  for (const char* text : {">gpipe</text>", ">≈ zb_h1</text>", ">M 4 · 100/s</text>",
                           ">none fits</text>", ">A &lt;plan&gt;</text>", ">best in 1 cell</text>",
                           ">best in 0 cells, within 1 % in 1</text>"})
    EXPECT_NE(svg.find(text), std::string::npos) << text << "\n" << svg;
}

/// What the elements `text` of a drawing say.
std::vector<std::string> texts_in(const std::string& svg) {
  std::vector<std::string> texts;
  for (std::size_t end = svg.find("</text>"); end != std::string::npos;
       end = svg.find("</text>", end + 1)) {
    const std::size_t begin = svg.rfind('>', end) + 1;
    texts.push_back(svg.substr(begin, end - begin));
  }
  return texts;
}

TEST(BestMap, HasALegendThatFitsOntoThePage) {
  SimulatedSweep sweep = empty_sweep();
  add(sweep, "gpipe", 4, 10, 100);
  add(sweep, "gpipe", 8, 10, 90);
  add(sweep, "zb_h1", 4, 10, 99.5);
  const std::string svg = render_best_map(sweep, best_points(sweep), "t");
  EXPECT_NE(svg.find("width=\"560\""), std::string::npos);
  const std::vector<std::string> texts = texts_in(svg);
  for (const std::string& text : texts) EXPECT_LT(28 + text_width(text, 11), 560 - 28) << text;
  const std::string all = join(texts, " ");
  EXPECT_NE(all.find("M: micro-batches; /s: samples a second; ≈ and a stripe: others within 1 % of "
                     "the best The best is the fastest that fits; what"),
            std::string::npos)
      << all;
}

/// In narrow cells there is no pace, and where one scheme is far ahead none is near.
TEST(BestMap, HasALegendOfWhatIsThere) {
  SimulatedSweep sweep = empty_sweep();
  for (int bandwidth = 1; bandwidth <= 30; ++bandwidth)
    add(sweep, "one_f_one_b", 4, bandwidth, 123456);
  const std::string all = join(texts_in(render_best_map(sweep, best_points(sweep), "t")), " ");
  EXPECT_EQ(all.find("samples a second"), std::string::npos) << all;
  EXPECT_EQ(all.find("stripe"), std::string::npos) << all;
  EXPECT_NE(all.find("M: micro-batches The best"), std::string::npos) << all;
}

TEST(BestMap, WithManyColumnsHasLettersThatItsLegendExplains) {
  SimulatedSweep sweep = empty_sweep();
  for (int bandwidth = 1; bandwidth <= 30; ++bandwidth)
    add(sweep, "one_f_one_b", 4, bandwidth, 100);
  const std::string svg = render_best_map(sweep, best_points(sweep), "t");
  std::size_t letters = 0;
  for (std::size_t at = svg.find(">A</text>"); at != std::string::npos;
       at = svg.find(">A</text>", at + 1))
    ++letters;
  EXPECT_EQ(letters, 31U);  // every cell, and the legend
}

}  // namespace
}  // namespace pipewright
