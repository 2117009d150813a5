// SPDX-License-Identifier: Apache-2.0
// The page as a whole: which sections there are, which scripts may run, and that no text acts.
#include <gtest/gtest.h>

#include <regex>

#include "core/base/text.h"
#include "core/page/page_content.h"
#include "core/page/sections.h"
#include "tests/unit/drawing/drawn_schedules.h"

namespace pipewright {
namespace {

constexpr const char* kHostilePage = "</script><script>x()</script><!--\"'";

RunRecord run_that(const std::string& state, const std::string& error = {}) {
  RunRecord run;
  run.state = state;
  run.error = error;
  run.label = "a";
  run.folder = "nowhere/a-1";
  run.varied = Value::mapping();
  return run;
}

Report small_report() {
  Report report{.title = "an experiment", .question = "Is it so?\n\nMore.\n  a command\n"};
  report.runs = {run_that("done"), run_that("failed", "it broke")};
  report.metric = "test_accuracy";
  report.version = "1.2.3";
  return report;
}

TEST(Pages, HaveTheQuestionAndTheStatesOfRuns) {
  const std::string page = report_page(small_report());
  EXPECT_NE(page.find("<p class=\"lead\">Is it so?</p>"), std::string::npos);
  EXPECT_NE(page.find("2 runs: 1 done, 1 failed"), std::string::npos);
  EXPECT_NE(page.find("<pre>a command</pre>"), std::string::npos);
}

TEST(Pages, LeaveOutSectionsWithoutAnythingToSay) {
  const std::string page = report_page(small_report());
  EXPECT_EQ(page.find("id=\"schedules\""), std::string::npos);
  EXPECT_EQ(page.find("href=\"#schedules\""), std::string::npos);
  EXPECT_NE(page.find("id=\"failures\""), std::string::npos);
  EXPECT_NE(page.find("it broke"), std::string::npos);
}

TEST(Pages, NameEveryScriptAndStyleInTheirPolicy) {
  const std::string page = report_page(small_report());
  std::smatch policy;
  ASSERT_TRUE(std::regex_search(page, policy,
                                std::regex("Content-Security-Policy\" content=\"([^\"]*)\"")));
  const std::string text = policy[1];
  EXPECT_TRUE(text.starts_with("default-src 'none';")) << text;
  // Each digest is 32 bytes in base 64.
  const std::regex digest("'sha256-[A-Za-z0-9+/]{43}='");
  const auto digests = static_cast<std::size_t>(std::distance(
      std::sregex_iterator(text.begin(), text.end(), digest), std::sregex_iterator()));
  EXPECT_EQ(digests, count_of("<script>", page) + count_of("<style>", page));
}

TEST(Pages, NoTextEndsAnElementOrBeginsAScript) {
  Report report = small_report();
  const std::size_t scripts = count_of("<script", report_page(report));
  report.title = report.question = report.metric = kHostilePage;
  report.remarks = {kHostilePage};
  report.runs[1].error = report.runs[1].label = kHostilePage;
  report.runs[0].folder = kHostilePage;
  report.commands = {{kHostilePage, kHostilePage}};
  report.verdicts = {{.say = kHostilePage, .why = kHostilePage}};
  report.curves = {{.title = kHostilePage,
                    .x_label = kHostilePage,
                    .y_label = kHostilePage,
                    .lines = {{.name = kHostilePage, .points = {{1, 1, 0, 1, kHostilePage}}}}}};
  report.schedules = {{.title = kHostilePage, .why_not = kHostilePage}};
  report.front = {.time = kHostilePage, .unit = "s", .rows = {{.name = kHostilePage}}};
  const std::string page = report_page(report);
  EXPECT_EQ(count_of("<script", page), scripts);
  EXPECT_EQ(count_of("</script", page), scripts);
  EXPECT_EQ(count_of("<!--", page), 0u);
  EXPECT_NE(page.find("&lt;/script&gt;"), std::string::npos) << "it is shown all the same";
}

TEST(Pages, CitePapersOfTheSchemesThatRan) {
  Report report = small_report();
  EXPECT_EQ(citation_section(report).body.find("zero"), std::string::npos);
  report.runs[0].config = parse_yaml("scheme: {name: zb_h1}", "x.yaml");
  EXPECT_NE(citation_section(report).body.find("@inproceedings{qi2024zero"), std::string::npos);
  EXPECT_EQ(citation_section(report).body.find("huang2019gpipe"), std::string::npos);
}

TEST(Pages, SettingsThatDifferStandApartFromSharedOnes) {
  Report report = small_report();
  report.runs[0].config = parse_yaml("a: {x: 1, y: 2}", "x.yaml");
  report.runs[1].config = parse_yaml("a: {x: 1, y: 3}", "x.yaml");
  const std::string body = settings_section(report).body;
  const std::size_t shared = body.find("1 setting that all runs share");
  ASSERT_NE(shared, std::string::npos) << body;
  EXPECT_LT(body.find("<code>a.y</code>"), shared);
  EXPECT_GT(body.find("<code>a.x</code>"), shared);
  EXPECT_NE(body.find("<code>2</code> 1 run, <code>3</code> 1 run"), std::string::npos) << body;
}

TEST(Pages, AreKnownByTheirBeginning) {
  const std::string page = report_page(small_report());
  EXPECT_TRUE(is_report_page(page.substr(0, 4096)));
  EXPECT_FALSE(is_report_page("<!DOCTYPE html>\n<html><head><title>Mine</title></head></html>"));
  EXPECT_FALSE(is_report_page(""));
}

TEST(Pages, SayWhichValueEachCellChoseAndHow) {
  Report report = small_report();
  report.table = Table{.metric = "test_accuracy",
                       .caption = "accuracy",
                       .row_keys = {"label"},
                       .best_over = "optimizer.lr",
                       .choices = {"gpipe: 0.1 (80.00, 2 runs)", "<xpipe>: none"}};
  const std::string body = results_section(report).body;
  const std::size_t heading = body.find("optimizer.lr chosen on held-out samples");
  ASSERT_NE(heading, std::string::npos) << body;
  EXPECT_NE(body.find("<li>gpipe: 0.1 (80.00, 2 runs)</li>", heading), std::string::npos) << body;
  EXPECT_NE(body.find("<li>&lt;xpipe&gt;: none</li>", heading), std::string::npos) << body;
}

TEST(Pages, LinesOfOneSchemeHaveOneColourInAllSections) {
  Report report = small_report();
  const auto chart = [](const std::vector<std::string>& names) {
    Chart made;
    for (const std::string& name : names)
      made.lines.push_back({.name = name, .points = {{1, 1}}, .series = name});
    return made;
  };
  report.curves = {chart({"a", "b"})};
  report.edges = {chart({"b"})};
  const std::string page = report_page(report);
  const std::size_t edges = page.find("id=\"strips\"");
  ASSERT_NE(edges, std::string::npos);
  EXPECT_NE(page.find("class=\"mark c1\"", edges), std::string::npos);
  EXPECT_EQ(page.find("class=\"mark c0\"", edges), std::string::npos);
}

TEST(Pages, FrontsCountTheRunsThatDiverged) {
  Report report = small_report();
  report.front = ReportFront{
      .time = "time",
      .unit = "s",
      .rows = {{.name = "a", .metric = 0.5, .runs = 2, .diverged = 1, .failed = 1, .time = 1},
               {.name = "b", .metric = 0.4, .runs = 3, .time = 2, .efficient = true}}};
  const std::string body = front_section(report).body;
  EXPECT_NE(body.find("<td class=\"n\">2, 1 diverged</td>"), std::string::npos) << body;
  EXPECT_NE(body.find("among those of which no run failed"), std::string::npos) << body;
  report.front->rows.erase(report.front->rows.begin());
  EXPECT_EQ(front_section(report).body.find("diverged"), std::string::npos);
}

}  // namespace
}  // namespace pipewright
