// SPDX-License-Identifier: Apache-2.0
// Lines over the values of a key: where points stand, what their intervals are, and what a run that
// diverged leaves in the picture.
#include <cmath>
#include <optional>
#include <sstream>

#include "core/tables/curves.h"
#include "core/tables/gnuplot.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

class PlotsOverKeys : public RunFolders {
 protected:
  PlotSpec spec(const std::string& section) const {
    return read_plot_spec(parse_yaml("plot: " + section, (root_ / "t.yaml").string()));
  }

  /// A run with one epoch. `accuracy` is empty for a run that ended in NaN.
  RunRecord at(const std::string& scheme, const std::string& lr, int seed,
               const std::string& accuracy) const {
    const std::string config = concat("{scheme: {name: ", scheme, "}, optimizer: {lr: ", lr,
                                      "}, train: {seed: ", seed, "}}");
    const std::string folder = concat(scheme, "-", lr, "-", seed);
    const bool done = !accuracy.empty();
    RunRecord record = run(folder, scheme, done ? "done" : "failed", config,
                           done ? accuracies({accuracy}) : std::string());
    if (done) return record;
    put(folder + "/run.json", R"({"state": "failed", "error": "nan", "exit_code": 6})");
    record = read_run(record.folder);
    EXPECT_TRUE(record.diverged());
    return record;
  }
};

constexpr const char* kOverLr = "{x: optimizer.lr, y: test_accuracy, lines: scheme.name}";

TEST_F(PlotsOverKeys, APointIsTheMeanOfARunsLastEpochAtTheKeysValue) {
  const auto pictures = make_pictures(
      spec(kOverLr),
      {at("gpipe", "0.1", 1, "0.5"), at("gpipe", "0.1", 2, "0.7"), at("gpipe", "0.01", 1, "0.4")});
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].x.label, "optimizer.lr");
  const auto titled =
      make_pictures(spec("{x: optimizer.lr, y: test_accuracy, lines: scheme.name, x_title: rate}"),
                    {at("gpipe", "0.1", 1, "0.5")});
  EXPECT_EQ(titled[0].x.label, "rate");
  const Curve& curve = pictures[0].curves.at(0);
  EXPECT_EQ(curve.name, "gpipe");
  ASSERT_EQ(curve.points.size(), 2u);
  EXPECT_EQ(curve.points[0].x, 0.01);
  EXPECT_EQ(curve.points[0].reach, 0) << "one run has no interval";
  EXPECT_EQ(curve.points[1].x, 0.1);
  EXPECT_DOUBLE_EQ(curve.points[1].mean, 60);
  EXPECT_NEAR(curve.points[1].reach, std::sqrt(200), 100 * tolerance::kFewOperations);
}

TEST_F(PlotsOverKeys, TheConfidenceIntervalIsStudents) {
  const auto pictures = make_pictures(
      spec("{x: optimizer.lr, lines: scheme.name, interval: confidence}"),
      {at("gpipe", "0.1", 1, "0.5"), at("gpipe", "0.1", 2, "0.6"), at("gpipe", "0.1", 3, "0.7")});
  // t with two degrees of freedom is 4.3027 (0.975 in (1 + t / √(t² + 2)) / 2), the deviation 10.
  EXPECT_NEAR(pictures.at(0).curves.at(0).points.at(0).reach,
              0.95 / std::sqrt((1 - 0.95 * 0.95) / 2) * 10 / std::sqrt(3),
              100 * tolerance::kHundredOperations);
}

TEST_F(PlotsOverKeys, ARunThatDivergedHasACrossAndNoNumber) {
  const auto pictures =
      make_pictures(spec(kOverLr), {at("gpipe", "0.1", 1, "0.5"), at("gpipe", "1", 1, "")});
  const Curve& curve = pictures.at(0).curves.at(0);
  ASSERT_EQ(curve.points.size(), 1u);
  ASSERT_EQ(curve.diverged.size(), 1u);
  EXPECT_EQ(curve.diverged[0].x, 1);
  const std::string script = gnuplot_script(pictures[0], PictureFormat::Svg, "x.svg");
  for (const char* part : {"set label '×' at first 1, graph 0.02 center", "title 'runs diverged'",
                           "set xtics (\"0.1\" 0.1, \"1\" 1)"})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

/// The x of the lines of a data block of a script; none for an empty line.
std::vector<std::optional<double>> places_in(const std::string& script, const std::string& block) {
  const std::size_t begin = script.find(block + " << END\n") + block.size() + 8;
  std::istringstream lines(script.substr(begin, script.find("END\n", begin) - begin));
  std::vector<std::optional<double>> places;
  for (std::string line; std::getline(lines, line);)
    places.push_back(line.empty() ? std::nullopt : std::optional(std::stod(line)));
  return places;
}

TEST_F(PlotsOverKeys, ErrorBarsOfSeveralLinesStandSideBySide) {
  std::vector<RunRecord> runs;
  for (const char* scheme : {"gpipe", "pipedream"})
    for (const char* lr : {"1", "3"})
      for (const int seed : {1, 2})
        runs.push_back(at(scheme, lr, seed, concat("0.", seed + (*scheme == 'g' ? 3 : 5))));
  const auto drawn = [&](const std::string& section) {
    const auto pictures = make_pictures(spec(section), runs);
    return gnuplot_script(pictures.at(0), PictureFormat::Svg, "x.svg");
  };
  const std::string script = drawn(kOverLr);
  for (const std::size_t place : {0U, 1U}) {
    const double value = place == 0 ? 1 : 3;
    const double left = *places_in(script, "$ours0").at(place);
    const double right = *places_in(script, "$ours1").at(place);
    EXPECT_LT(left, value);
    EXPECT_GT(right, value);
    // Half the distance of the values is where the bars of one meet those of the next.
    EXPECT_LT(right - left, 1);
    EXPECT_NEAR((left + right) / 2, value, tolerance::kFewOperations * value);
  }
  const std::string logarithmic =
      drawn("{x: optimizer.lr, y: test_accuracy, lines: scheme.name, log: x}");
  const double left = *places_in(logarithmic, "$ours0").at(1);
  const double right = *places_in(logarithmic, "$ours1").at(1);
  EXPECT_LT(left, 3);
  EXPECT_NEAR(left * right, 9, 9 * tolerance::kFewOperations);
}

TEST_F(PlotsOverKeys, NoLineJoinsPointsOverAPlaceWhereAllRunsDiverged) {
  const auto drawn = [&](const std::string& in_the_middle) {
    const auto pictures = make_pictures(
        spec(kOverLr), {at("gpipe", "1", 1, "0.5"), at("gpipe", "2", 1, ""),
                        at("gpipe", "2", 2, in_the_middle), at("gpipe", "3", 1, "0.4")});
    return gnuplot_script(pictures.at(0), PictureFormat::Svg, "x.svg");
  };
  using Places = std::vector<std::optional<double>>;
  EXPECT_EQ(places_in(drawn(""), "$ours0"), (Places{1, std::nullopt, 3}));
  EXPECT_EQ(places_in(drawn("0.3"), "$ours0"), (Places{1, 2, 3})) << "one run is done there";
  EXPECT_NE(drawn("").find("title \"gpipe (2 of 4 diverged)\""), std::string::npos);
}

TEST_F(PlotsOverKeys, TheLegendCountsRunsOfAPointAndOfTheWholeLineApart) {
  const auto drawn = [&](const std::vector<RunRecord>& runs) {
    return gnuplot_script(make_pictures(spec(kOverLr), runs).at(0), PictureFormat::Svg, "x.svg");
  };
  std::vector<RunRecord> runs;
  for (const char* lr : {"1", "2", "3"})
    for (const int seed : {1, 2}) runs.push_back(at("gpipe", lr, seed, concat("0.", seed)));
  EXPECT_NE(drawn(runs).find("title \"gpipe (2 runs per point)\""), std::string::npos);
  for (const int seed : {1, 2}) runs.push_back(at("gpipe", "4", seed, ""));
  runs.push_back(at("gpipe", "5", 1, "0.1"));
  runs.push_back(at("gpipe", "5", 2, ""));
  const std::string script = drawn(runs);
  EXPECT_NE(script.find("title \"gpipe\""), std::string::npos) << script;
  EXPECT_NE(script.find("title \"(up to 2 runs per point, 3 of 10 diverged)\""), std::string::npos)
      << script;
}

TEST_F(PlotsOverKeys, ARunThatOnlyFailedHasNoCross) {
  const RunRecord failed = run("x", "x", "failed", "{optimizer: {lr: 1}}");
  const auto pictures =
      make_pictures(spec("{x: optimizer.lr}"), {at("gpipe", "0.1", 1, "0.5"), failed});
  for (const Curve& curve : pictures.at(0).curves) EXPECT_TRUE(curve.diverged.empty());
}

TEST_F(PlotsOverKeys, NamesStandSideBySide) {
  const auto pictures =
      make_pictures(spec("{x: scheme.name, lines: optimizer.lr}"),
                    {at("gpipe", "0.1", 1, "0.5"), at("pipedream", "0.1", 1, "0.4")});
  const Picture& picture = pictures.at(0);
  EXPECT_EQ(picture.curves.at(0).points.at(1).x, 1);
  const std::string script = gnuplot_script(picture, PictureFormat::Svg, "x.svg");
  EXPECT_NE(script.find("set xtics (\"gpipe\" 0, \"pipedream\" 1)"), std::string::npos) << script;
}

TEST_F(PlotsOverKeys, AnAxisWithOnePlaceHasARangeSoThatGnuplotDoesNotWarn) {
  const auto pictures = make_pictures(spec("{x: epoch}"), {at("gpipe", "0.1", 1, "0.5")});
  const std::string script = gnuplot_script(pictures.at(0), PictureFormat::Svg, "x.svg");
  EXPECT_NE(script.find("set xrange [0.5:1.5]\n"), std::string::npos) << script;
}

TEST_F(PlotsOverKeys, GnuplotDrawsErrorBarsLogarithmsAndTheCurveOver) {
  put("edge.csv", "scheme,lr,accuracy\ngpipe,0.1,50\ngpipe,1,40.5\npipedream,9,9\n");
  const auto pictures = make_pictures(
      spec("{x: optimizer.lr, y: test_accuracy, lines: scheme.name, log: [x, y], over: {file: "
           "edge.csv, x: lr, y: accuracy, label: predicted, match: {scheme: scheme.name}}}"),
      {at("gpipe", "0.1", 1, "0.5"), at("gpipe", "0.1", 2, "0.75"), at("gpipe", "1", 1, "0.25")});
  const std::string script = gnuplot_script(pictures.at(0), PictureFormat::Svg, "x.svg");
  for (const char* part :
       {"set logscale x\n", "set logscale y\n", "set ylabel \"test_accuracy (%)\"",
        "set key title \"mean ± sample standard deviation\"",
        "$ours0 using 1:2:3:4 with yerrorbars", "$ours0 using 1:2 with linespoints",
        "$over << END\n0.1 50\n1 40.5\nEND\n", "title \"predicted\""})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

TEST_F(PlotsOverKeys, MeansOverMoreThanSeedsAreSaid) {
  const auto at_lr = [&](const std::string& lr, int seed) {
    return run(concat(lr, "-", seed), "x", "done",
               concat("{scheme: {name: gpipe}, optimizer: {lr: ", lr, "}}"), accuracies({"0.5"}),
               concat("{optimizer.lr: ", lr, ", train.seed: ", seed, "}"));
  };
  const std::vector<RunRecord> runs{at_lr("0.1", 1), at_lr("0.1", 2), at_lr("1", 1)};
  EXPECT_EQ(mixing_note(spec("{lines: label}"), runs).find("Means mix optimizer.lr: ± is over"),
            0u);
  EXPECT_EQ(
      mixing_note(spec("{x: scheme.name, lines: label}"), runs).find("Means mix optimizer.lr"), 0u);
  EXPECT_EQ(mixing_note(spec("{}"), runs), "") << "each rate has a line";
  EXPECT_EQ(mixing_note(spec("{x: optimizer.lr}"), runs), "");
  EXPECT_EQ(mixing_note(spec("{pictures: optimizer.lr}"), runs), "");
  EXPECT_EQ(mixing_note(spec("{kind: map, x: optimizer.lr, y: scheme.name}"), runs), "");
}

TEST_F(PlotsOverKeys, FaultsAreErrorsWithPlaceAndSuggestion) {
  put("edge.csv", "scheme,lr,accuracy\n");
  const auto fails = [&](const std::string& section, const char* part) {
    const auto text = error_text([&] {
      make_pictures(spec(section), {at("gpipe", "0.1", 1, "0.5"), at("gpipe", "0", 1, "0.1")});
    });
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  fails("{x: optimizer.lrr}", "t.yaml:1:11: plot.x: no run has an option 'optimizer.lrr'; did you");
  fails("{y: test_acuracy}", "plot.y: no run has a metric 'test_acuracy'; did you mean");
  fails("{x: optimizer.lr, log: x}", "plot.x: a run has optimizer.lr 0, which has no place on a");
  fails("{x: optimizer.lr, log: z}", "plot.log is 'z'; expected x, y or a list of them");
  fails("{x: minibatch, y: train_loss}", "plot.x is minibatch, which only values of probes have");
  fails("{x: minibatch}", "minibatch is read from evaluations.csv, which no run has");
  fails("{x: tokens, y: lr}", "plot.x is tokens, which only evaluations have");
  fails("{lines: stage}", "plot.lines has 'stage', which only values of probes have");
  fails("{color: test_loss}", "plot.color has no effect on lines");
  fails("{x: optimizer.lr, over: {file: edge.csv, x: lr, y: acuracy}}",
        "plot.over: edge.csv has no column 'acuracy'; did you mean 'accuracy'?");
  fails("{over: {label: edge}}", "plot.over.file is missing; expected the path of a CSV file");
}

}  // namespace
}  // namespace pipewright
