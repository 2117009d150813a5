// SPDX-License-Identifier: Apache-2.0
// Maps over two keys: what a cell shows, where it begins and ends, and what gnuplot is told.
#include "core/tables/heat_map.h"

#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class HeatMaps : public RunFolders {
 protected:
  PlotSpec spec(const std::string& section) const {
    return read_plot_spec(parse_yaml("plot: " + section, (root_ / "t.yaml").string()));
  }

  /// A run of one epoch; `accuracy` is "nan" for one that diverged, "" for one that is missing.
  RunRecord at(const std::string& lr, int delay, int seed, const std::string& accuracy) const {
    const std::string config =
        concat("{optimizer: {lr: ", lr, "}, scheme: {name: delayed_sgd, delay: ", delay, "}}");
    const std::string folder = concat("r-", lr, "-", delay, "-", seed);
    if (accuracy.empty()) return run(folder, "x", "missing", config);
    if (accuracy != "nan") return run(folder, "x", "done", config, accuracies({accuracy}));
    run(folder, "x", "failed", config);
    put(folder + "/run.json", R"({"state": "failed", "error": "nan", "exit_code": 6})");
    return read_run(root_ / folder);
  }
};

constexpr const char* kMap = "{kind: map, x: optimizer.lr, y: scheme.delay, log: x}";

TEST_F(HeatMaps, ACellIsTheMeanOfItsRunsAndCountsThoseThatDiverged) {
  const auto maps =
      make_maps(spec(kMap), {at("0.1", 1, 1, "0.5"), at("0.1", 1, 2, "0.7"), at("0.1", 1, 3, "nan"),
                             at("1", 1, 1, "nan"), at("1", 2, 1, "")});
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_TRUE(maps[0].percent);
  ASSERT_EQ(maps[0].cells.size(), 2u) << "a missing run leaves a hole";
  const MapCell& mixed = maps[0].cells[0];
  EXPECT_DOUBLE_EQ(mixed.mean, 60);
  EXPECT_EQ(mixed.runs, 2);
  EXPECT_EQ(mixed.diverged, 1);
  EXPECT_EQ(maps[0].cells[1].runs, 0);
  EXPECT_EQ(maps[0].cells[1].diverged, 1);
}

TEST_F(HeatMaps, CellsMeetHalfwayBetweenTheirValues) {
  const auto maps = make_maps(spec(kMap), {at("0.25", 1, 1, "0.5"), at("4", 1, 1, "0.25"),
                                           at("0.25", 4, 1, "0.75"), at("4", 4, 1, "0")});
  const std::string script = gnuplot_script(maps.at(0), PictureFormat::Svg, "x.svg");
  // On the logarithmic axis 0.25 and 4 meet at 1, on the other 1 and 4 at 2.5.
  for (const char* part :
       {"set logscale x\n", "set xrange [0.0625:16]\n", "set yrange [-0.5:5.5]\n",
        "$cells << END\n0.25 1 0.0625 1 -0.5 2.5 50\n0.25 4 0.0625 1 2.5 5.5 75\n"
        "4 1 1 16 -0.5 2.5 25\n4 4 1 16 2.5 5.5 0\nEND\n",
        "$cells using 1:2:3:4:5:6:7 with boxxyerror", "set cblabel \"test_accuracy (%)\"",
        "set xtics (\"0.25\" 0.25, \"4\" 4)"})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
  EXPECT_EQ(script.find("diverged"), std::string::npos) << script;
}

TEST_F(HeatMaps, CellsThatDivergedAreDrawnAsSuchAndTheCurveOverAll) {
  put("edge.csv", "lr,delay\n0.5,1\n0.25,2\n");
  const auto maps = make_maps(
      spec("{kind: map, x: optimizer.lr, y: scheme.delay, color: test_loss, over: {file: edge.csv, "
           "x: lr, y: delay, label: predicted edge}}"),
      {at("1", 1, 1, "0.5"), at("1", 1, 2, "nan"), at("2", 1, 1, "nan")});
  const std::string script = gnuplot_script(maps.at(0), PictureFormat::Svg, "x.svg");
  for (const char* part :
       {"set cbrange [0.125:0.375]\n", "$cells << END\n1 1 0.5 1.5 0.5 1.5 0.25\nEND\n",
        "$diverged << END\n2 1 1.5 2.5 0.5 1.5 nan\nEND\n", "title 'all runs diverged'",
        "$some << END\n1 1 ", "title 'some runs diverged; the mean of the others'",
        "$over << END\n0.5 1\n0.25 2\nEND\n", "title \"predicted edge\""})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
}

TEST_F(HeatMaps, RowsOfACurveThatAreNoNumbersAreRefusedWithTheirLine) {
  for (const auto& [rows, line] :
       {std::pair("0.5,1\nx,2\n", "3: lr is 'x'"), std::pair("\n0.5,1\n\n1,\n", "5: delay is ''"),
        std::pair("inf,1\n", "2: lr is 'inf'"), std::pair("1,nan\n", "2: delay is 'nan'")}) {
    put("edge.csv", concat("lr,delay\n", std::string(rows)));
    try {
      make_maps(spec("{kind: map, x: optimizer.lr, y: scheme.delay, color: test_loss, over: "
                     "{file: edge.csv, x: lr, y: delay}}"),
                {at("1", 1, 1, "0.5")});
      ADD_FAILURE() << rows << " was drawn";
    } catch (const Error& error) {
      const std::string text = error.what();
      const std::string wanted =
          concat("edge.csv:", std::string_view(line), ", which is no number that a curve can have");
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_TRUE(text.ends_with(wanted)) << text << "\n" << wanted;
    }
  }
}

TEST_F(HeatMaps, AMapOfDivergedRunsAloneHasNoColours) {
  const auto maps = make_maps(spec(kMap), {at("1", 1, 1, "nan"), at("2", 1, 1, "0.5")});
  ASSERT_EQ(maps.size(), 1u);
  HeatMap all = maps[0];
  all.cells.pop_back();
  const std::string script = gnuplot_script(all, PictureFormat::Svg, "x.svg");
  EXPECT_EQ(script.find("$cells"), std::string::npos) << script;
}

TEST_F(HeatMaps, FaultsAreErrorsWithPlace) {
  put("edge.csv", "lr,delay\n0.5,1\n");
  const auto fails = [&](const std::string& section, const char* part) {
    const auto text = error_text([&] { make_maps(spec(section), {at("1", 1, 1, "0")}); });
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  fails("{kind: map, x: optimizer.lr}", "plot.y is missing; a map needs two keys");
  fails("{kind: map, x: epoch, y: optimizer.lr}", "plot.x is 'epoch'; a map needs keys");
  fails("{kind: map, x: optimizer.lr, y: scheme.delay, lines: label}",
        "plot.lines has no effect on a map");
  fails("{kind: map, x: optimizer.lr, y: scheme.delay, color: test_acuracy}",
        "plot.color: no run has a metric 'test_acuracy'; did you mean");
  fails("{kind: map, x: optimizer.lr, y: scheme.delay, log: color}",
        "plot.color: a cell has test_accuracy of 0 or less");
  fails("{kind: map, x: optimizer.lr, y: scheme.name, over: {file: edge.csv, x: lr, y: delay}}",
        "plot.over: plot.y is scheme.name, whose values are names");
}

}  // namespace
}  // namespace pipewright
