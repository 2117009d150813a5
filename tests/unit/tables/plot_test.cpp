// SPDX-License-Identifier: Apache-2.0
// Learning curves: which runs stand behind a line, and what gnuplot is told.
#include <cmath>
#include <set>

#include "core/tables/curves.h"
#include "core/tables/gnuplot.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

class Plots : public RunFolders {
 protected:
  PlotSpec spec(const std::string& section) const {
    return read_plot_spec(parse_yaml("plot: " + section, (root_ / "t.yaml").string()));
  }

  RunRecord vgg(const std::string& folder, const std::string& label, int stages,
                const std::vector<std::string>& values) const {
    return run(folder, label, "done",
               concat("{model: {name: vgg16}, pipeline: {stages: ", stages, "}}"),
               accuracies(values));
  }
};

TEST_F(Plots, ALineIsTheMeanOverSeedsWithTheirDeviation) {
  const auto pictures =
      make_pictures(spec("{}"), {vgg("a", "PD", 2, {"0.5", "0.7"}), vgg("b", "PD", 2, {"0.7", ""}),
                                 vgg("c", "ST", 2, {"0.1", "0.2"})});
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].title, "");
  EXPECT_TRUE(pictures[0].percent);
  ASSERT_EQ(pictures[0].curves.size(), 2u);
  const Curve& pd = pictures[0].curves[0];
  EXPECT_EQ(pd.name, "PD");
  ASSERT_EQ(pd.points.size(), 2u);
  EXPECT_EQ(pd.points[0].x, 1);
  EXPECT_DOUBLE_EQ(pd.points[0].mean, 60);
  EXPECT_NEAR(pd.points[0].reach, std::sqrt(200), 100 * tolerance::kFewOperations);
  EXPECT_EQ(pd.points[1].runs, 1) << "the other run was not evaluated then";
}

TEST_F(Plots, EachValueOfTheKeysOfPicturesHasItsOwn) {
  const auto pictures = make_pictures(spec("{pictures: [model.name, pipeline.stages]}"),
                                      {vgg("a", "PD", 2, {"0.5"}), vgg("b", "PD", 4, {"0.7"})});
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].title, "vgg16, stages 2");
  EXPECT_EQ(pictures[1].title, "vgg16, stages 4");
}

TEST_F(Plots, PublishedCurvesStandBesideTheLinesTheyMatch) {
  put("curves.csv", "scheme,epoch,value\nPD,2,55.5\nPD,1,44.25\nPD,3,OOM\nelse,1,1\n");
  const auto pictures =
      make_pictures(spec("{published: {file: curves.csv, match: {scheme: label}}}"),
                    {vgg("a", "PD", 2, {"0.5"}), vgg("b", "ST", 2, {"0.5"})});
  const auto& curves = pictures.at(0).curves;
  ASSERT_EQ(curves[0].published.size(), 2u);
  EXPECT_EQ(curves[0].published[0].x, 1);
  EXPECT_EQ(curves[0].published[0].mean, 44.25);
  EXPECT_TRUE(curves[1].published.empty());
}

TEST_F(Plots, OnHardwareCurvesAreDrawnAgainstItsHours) {
  put("curves.csv", "scheme,epoch,value\nPD,1,44.25\n");
  RunRecord run = vgg("a", "PD", 2, {"0.5", "0.7"});
  run.modelled_epoch_hours = 1.5;
  run.modelled_run_hours = 2;  // its last epoch is a third of one
  const auto pictures = make_pictures(
      spec("{hardware: p40.yaml, published: {file: curves.csv, match: {scheme: label}}}"), {run});
  const Curve& curve = pictures.at(0).curves.at(0);
  EXPECT_EQ(curve.points.at(0).x, 1.5);
  EXPECT_EQ(curve.points.at(1).x, 2);
  EXPECT_TRUE(curve.published.empty()) << "whose hours nobody knows";
  const std::string script = gnuplot_script(pictures[0], PictureFormat::Svg, "x.svg");
  EXPECT_NE(script.find("set xlabel \"modelled hours on p40\""), std::string::npos) << script;
}

TEST_F(Plots, FaultsAreErrorsWithPlaceAndSuggestion) {
  put("curves.csv", "scheme,epoch,value\n");
  const auto text = error_text([&] {
    make_pictures(spec("{lines: labl, metric: test_acuracy, published: {file: curves.csv, match: "
                       "{schema: label}}}"),
                  {vgg("a", "PD", 2, {"0.5"})});
  });
  for (const char* part : {"t.yaml:1:15: plot.lines: no run has an option 'labl'",
                           "plot.metric: no run has a metric 'test_acuracy'; did you mean",
                           "curves.csv has no column 'schema'; did you mean 'scheme'?"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(error_text([&] { spec("{liens: label}"); }).find("did you mean 'lines'?"),
            std::string::npos);
}

TEST_F(Plots, GnuplotIsToldOfLinesBandsAndWhatWasPublished) {
  const Picture picture{
      .title = "it's",
      .metric = "test_accuracy",
      .percent = true,
      .curves = {{.name = "PD",
                  .points = {{1, 50, 2, 3}, {2, 60, 1, 3}},
                  .published = {{1, 55, 0, 1}},
                  .runs = 3},
                 {.name = "ST", .points = {{1, 40, 0, 1}}, .color = 1, .runs = 1}}};
  const std::string script = gnuplot_script(picture, PictureFormat::Svg, "x.svg");
  for (const char* part :
       {"set title \"it\\047s\"", "set ylabel \"test_accuracy (%)\"",
        "$ours0 << END\n1 50 48 52\n2 60 59 61\nEND\n",
        "$ours0 using 1:3:4 with filledcurves lc rgb '#0072b2' notitle", "title \"PD (3 runs)\"",
        "$theirs0 using 1:2 with lines lw 1 dt 2 lc rgb '#0072b2' title \"PD, published\"",
        "set xtics 1\n", "$ours1 using 1:2 with points pt 7 lc rgb '#d55e00' title \"ST\""})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

/// gnuplot would leave out the points of a band whose lower edge a logarithmic axis does not have.
TEST_F(Plots, ABandThatReachesBelowALogarithmicAxisEndsAtTheLeastThatIsDrawn) {
  Picture picture{.metric = "test_loss",
                  .curves = {{.name = "PD", .points = {{1, 5, 2, 3}, {2, 4, 6, 3}}, .runs = 3},
                             {.name = "ST", .points = {{1, 0.5, 0, 1}}, .color = 1, .runs = 1}}};
  EXPECT_NE(gnuplot_script(picture, PictureFormat::Svg, "x.svg").find("2 4 -2 10\n"),
            std::string::npos);
  picture.log_y = true;
  EXPECT_NE(gnuplot_script(picture, PictureFormat::Svg, "x.svg").find("1 5 3 7\n2 4 0.5 10\n"),
            std::string::npos);
}

TEST_F(Plots, LinesThatAreEqualEverywhereAreOne) {
  const auto pictures = make_pictures(
      spec("{pictures: pipeline.stages, lines: label}"),
      {vgg("a", "MP", 2, {"0.5", "0.7"}), vgg("b", "PD", 2, {"0.5", "0.6"}),
       vgg("c", "GP", 2, {"0.5", "0.7"}), vgg("d", "MP", 4, {"0.5"}), vgg("e", "GP", 4, {"0.4"})});
  ASSERT_EQ(pictures.size(), 2u);
  ASSERT_EQ(pictures[0].curves.size(), 2u);
  EXPECT_EQ(pictures[0].curves[0].name, "MP = GP");
  EXPECT_EQ(pictures[0].curves[0].series, "MP");
  EXPECT_EQ(pictures[0].curves[1].name, "PD") << "one point of two is another";
  ASSERT_EQ(pictures[1].curves.size(), 2u) << "they differ with four stages";
  EXPECT_EQ(pictures[1].curves[0].color, pictures[0].curves[0].color);
  EXPECT_NE(pictures[1].curves[1].color, pictures[0].curves[1].color) << "GP is not PD";
}

/// Lines that became one need one colour; those beyond the last colour differ in their dashes.
TEST_F(Plots, NoTwoLinesOfAPictureLookAlike) {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 26; ++i)
    runs.push_back(vgg(concat("r", i), concat("L", i), 2, {concat("0.", 10 + i / 2), "0.5"}));
  const auto few = make_pictures(spec("{}"), {runs.begin(), runs.begin() + 4});
  EXPECT_EQ(few.at(0).curves.at(1).color, 1u);
  const auto pictures = make_pictures(spec("{}"), runs);
  ASSERT_EQ(pictures.at(0).curves.size(), 13u);
  std::set<std::string> looks;
  const std::string script = gnuplot_script(pictures[0], PictureFormat::Svg, "x.svg");
  for (std::size_t at = script.find("with lines "); at != std::string::npos;
       at = script.find("with lines ", at + 1))
    looks.insert(script.substr(at, script.find(" title", at) - at));
  EXPECT_EQ(looks.size(), 13u) << script;
}

TEST_F(Plots, TheNamesOfManyEqualLinesGoOnBelowInTheLegend) {
  const Picture picture{
      .metric = "m",
      .curves = {{.name = "data_parallel = model_parallel = one_f_one_b = interleaved",
                  .points = {{1, 40, 0, 1}}}}};
  const std::string script = gnuplot_script(picture, PictureFormat::Svg, "x.svg");
  for (const char* part : {"title \"data_parallel = model_parallel = \"",
                           "keyentry with points pt 0 lc rgb 'white' title \"one_f_one_b = "
                           "interleaved\""})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

TEST_F(Plots, ALineOfEpochsCountsItsRunsThatDiverged) {
  RunRecord diverged = vgg("b", "PD", 2, {"0.5"});
  diverged.state = "failed";
  diverged.exit_code = 6;
  const auto pictures = make_pictures(spec("{}"), {vgg("a", "PD", 2, {"0.5", "0.7"}), diverged});
  const Curve& curve = pictures.at(0).curves.at(0);
  ASSERT_EQ(curve.diverged.size(), 1u);
  EXPECT_EQ(curve.diverged[0].x, 1) << "its last epoch";
  const std::string script = gnuplot_script(pictures[0], PictureFormat::Svg, "x.svg");
  EXPECT_NE(script.find("title \"PD (2 runs, 1 diverged)\""), std::string::npos) << script;
  RunRecord at_once = vgg("c", "PD", 2, {});
  at_once.state = "failed";
  at_once.exit_code = 6;
  const auto all =
      make_pictures(spec("{}"), {vgg("a", "PD", 2, {"0.5", "0.7"}), diverged, at_once});
  EXPECT_NE(gnuplot_script(all.at(0), PictureFormat::Svg, "x.svg")
                .find("title \"PD (3 runs, 2 diverged)\""),
            std::string::npos)
      << "one has no epoch, and counts";
}

TEST_F(Plots, ARunHasACrossWhereItsMetricBecomesInfinite) {
  const auto pictures = make_pictures(spec("{}"), {vgg("a", "PD", 2, {"0.5", "0.7", "0.8"}),
                                                   vgg("b", "PD", 2, {"0.3", "inf", "inf"})});
  const Curve& curve = pictures.at(0).curves.at(0);
  ASSERT_EQ(curve.points.size(), 3u);
  EXPECT_EQ(curve.points[1].runs, 1);
  ASSERT_EQ(curve.diverged.size(), 1u);
  EXPECT_EQ(curve.diverged[0].x, curve.points[1].x);
  EXPECT_EQ(curve.diverged[0].runs, 1);
}

/// A run that was interrupted must not move the mean of an epoch that others have, too.
TEST_F(Plots, UnfinishedRunsAreInNoMeanAndDrawnAloneWithTheirState) {
  const auto in_state = [&](const char* folder, const char* label, const char* state,
                            const std::vector<std::string>& values) {
    RunRecord record = vgg(folder, label, 2, values);
    record.state = state;
    return record;
  };
  const auto pictures = make_pictures(
      spec("{}"),
      {vgg("a", "PD", 2, {"0.5", "0.7"}), in_state("b", "PD", "interrupted", {"0.1"}),
       in_state("c", "PD", "failed", {"0.2", "0.2"}),
       in_state("d", "ST", "running", {"0.1", "0.3"}), in_state("e", "ST", "interrupted", {"0.3"}),
       in_state("f", "XP", "missing", {})});
  const auto& curves = pictures.at(0).curves;
  ASSERT_EQ(curves.size(), 2u);
  ASSERT_EQ(curves[0].points.size(), 2u);
  EXPECT_DOUBLE_EQ(curves[0].points[0].mean, 50);
  EXPECT_EQ(curves[0].points[0].runs, 1);
  ASSERT_EQ(curves[1].points.size(), 1u) << "the epoch that both have";
  EXPECT_DOUBLE_EQ(curves[1].points[0].mean, 20);
  const std::string script = gnuplot_script(pictures[0], PictureFormat::Svg, "x.svg");
  for (const char* part : {"\"PD\"", "(left out: 1 failed, 1 interrupted)", "\"ST\"",
                           "(unfinished: 1 interrupted, 1 running)"})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

TEST_F(Plots, NoTextIsCodeOfGnuplotOrTheEndOfATextOfXml) {
  const Picture picture{.title = "]]>`id`\"\x1b",
                        .metric = "m",
                        .curves = {{.name = "'90s don''t", .points = {{1, 40, 0, 1}}}}};
  const std::string script = gnuplot_script(picture, PictureFormat::Svg, "x.svg");
  for (const char* part : {"set title \"\\135\\135 \\076\\140id\\140\\042\\134x1b\"",
                           "title \"\\047\\071\\060s don\\047\\047t\""})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

}  // namespace
}  // namespace pipewright
