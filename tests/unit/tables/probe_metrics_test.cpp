// SPDX-License-Identifier: Apache-2.0
// What probes measured, as a metric of tables and plots.
#include "core/tables/probe_metrics.h"

#include "core/tables/curves.h"
#include "core/tables/table.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

constexpr const char* kLog =
    "epoch,minibatch,stage,probe,quantity,value\n"
    "0,0,0,weight_gap,forward_relative,8\n"
    "0,0,1,weight_gap,forward_relative,4\n"
    "0,0,,sharpness,largest,50\n"
    "0,0,0,sharpness,largest,2\n"
    "1,0,0,weight_gap,forward_relative,3\n"
    "1,0,1,weight_gap,forward_relative,1\n"
    "1,2,0,weight_gap,forward_relative,5\n"
    "1,2,1,weight_gap,forward_relative,\n";

class ProbeMetrics : public RunFolders {
 protected:
  RunRecord probed(const std::string& folder, const std::string& log,
                   const std::string& state = "done") const {
    put(folder + "/probes.csv", log);
    return run(folder, folder, state, "{pipeline: {stages: 2}}", accuracies({"0.1", "0.2"}));
  }
  Table table(const std::string& section, const std::vector<RunRecord>& runs) const {
    return make_table(read_table_spec(parse_yaml("table: " + section, "t.yaml")), runs);
  }
  std::vector<Picture> pictures(const std::string& section,
                                const std::vector<RunRecord>& runs) const {
    return make_pictures(read_plot_spec(parse_yaml("plot: " + section, "t.yaml")), runs);
  }
};

TEST_F(ProbeMetrics, ATableHasTheMeanOfTheLastEpochOverStages) {
  const Table made = table("{metric: 'probe.weight_gap.forward_relative'}", {probed("a", kLog)});
  EXPECT_EQ(made.cells.at(0).at(0).values, std::vector<double>{3}) << "of 3, 1 and 5";
}

TEST_F(ProbeMetrics, OneStageStandsInBrackets) {
  const Table made = table(
      "{metric: 'probe.weight_gap.forward_relative[0]', beside: "
      "['probe.weight_gap.forward_relative[1]']}",
      {probed("a", kLog)});
  EXPECT_EQ(made.cells.at(0).at(0).values, std::vector<double>{4}) << "of 3 and 5";
  EXPECT_EQ(made.beside.at(0).cells.at(0).at(0).values, std::vector<double>{1});
}

TEST_F(ProbeMetrics, TheWholeModelsValueIsNoMeanOverStages) {
  const Table made = table("{metric: probe.sharpness.largest}", {probed("a", kLog)});
  EXPECT_EQ(made.cells.at(0).at(0).values, std::vector<double>{50}) << "last measured in epoch 0";
}

TEST_F(ProbeMetrics, SeveralRunsAreAveragedAsForOtherMetrics) {
  const std::string head = "epoch,minibatch,stage,probe,quantity,value\n";
  RunRecord a = probed("a", head + "1,0,0,norms,gradient,1\n"),
            b = probed("b", head + "1,0,0,norms,gradient,3\n");
  a.label = b.label = "same";
  const Table made =
      table("{metric: probe.norms.gradient, rows: label}", {a, b, probed("c", head)});
  EXPECT_EQ(made.cells.at(0).at(0).mean(), 2);
  EXPECT_EQ(made.cells.at(1).at(0).without, 1);
}

TEST_F(ProbeMetrics, AProbeIsDrawnOverMiniBatchesWithALinePerStage) {
  put("a/steps.csv", "epoch,minibatch,loss\n0,0,1\n0,1,1\n0,2,1\n0,3,1\n1,0,1\n");
  const auto drawn = pictures("{x: minibatch, y: probe.weight_gap.forward_relative, lines: stage}",
                              {probed("a", kLog)});
  const std::vector<Curve>& curves = drawn.at(0).curves;
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].name, "stage 0");
  ASSERT_EQ(curves[0].points.size(), 3u);
  EXPECT_EQ(curves[0].points[1].x, 4) << "an epoch has four mini-batches";
  EXPECT_EQ(curves[0].points[2].x, 6);
  EXPECT_EQ(curves[0].points[2].mean, 5);
  EXPECT_EQ(curves[1].points.size(), 2u) << "an empty field is no value";
}

TEST_F(ProbeMetrics, WithoutStepsMiniBatchesOfLaterEpochsHaveNoPlace) {
  try {
    pictures("{x: minibatch, y: probe.weight_gap.forward_relative}", {probed("a", kLog)});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_NE(std::string(error.what()).find("steps.csv: is not there; plot with x: minibatch"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(ProbeMetrics, AProbeIsDrawnOverStages) {
  const auto drawn = pictures("{x: stage, y: probe.weight_gap.forward_relative, lines: label}",
                              {probed("a", kLog)});
  const std::vector<LinePoint>& points = drawn.at(0).curves.at(0).points;
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].mean, 4) << "of the last epoch";
  EXPECT_EQ(points[1].x, 1);
}

TEST_F(ProbeMetrics, AProbeIsDrawnOverAKeyAndOverEpochsToo) {
  const auto over_key =
      pictures("{x: pipeline.stages, y: probe.weight_gap.forward_relative, lines: stage}",
               {probed("a", kLog)});
  ASSERT_EQ(over_key.at(0).curves.size(), 2u);
  EXPECT_EQ(over_key[0].curves[0].points.at(0).x, 2);
  EXPECT_EQ(over_key[0].curves[0].points.at(0).mean, 4);
  const auto over_epochs = pictures("{y: probe.weight_gap.forward_relative}", {probed("a", kLog)});
  EXPECT_EQ(over_epochs.at(0).curves.at(0).points.at(0).mean, 6);
  EXPECT_EQ(over_epochs.at(0).curves.at(0).points.at(1).mean, 3);
}

TEST_F(ProbeMetrics, AnAbsentOneIsAnErrorThatNamesWhatIsThere) {
  const auto fails = [&](const std::string& metric, const RunRecord& run, const std::string& part) {
    const auto text = error_text([&] { table("{metric: '" + metric + "'}", {run}); });
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  fails("probe.weight_gap.forward_relativ", probed("a", kLog),
        "t.yaml:1:17: table.metric: no run has a metric 'probe.weight_gap.forward_relativ'; did "
        "you mean "
        "'probe.weight_gap.forward_relative'? Measured are probe.sharpness.largest, "
        "probe.weight_gap.forward_relative");
  fails("probe.weight_gap.forward_relative[7]", probed("a", kLog),
        "Measured are probe.sharpness.largest");
  fails("probe.norms.gradient", run("b", "b", "done", "{}", accuracies({"0.1"})),
        "no probe has measured anything in these runs (there is no probes.csv)");
  fails("probe.p", probed("a", kLog), "'probe.p' is no metric of a probe; expected probe.<probe>");
  fails("probe.norms.gradient[x]", probed("a", kLog), "is no metric of a probe");
}

TEST_F(ProbeMetrics, ADamagedFileMakesItsRunAFailedOne) {
  const RunRecord good = probed("a", kLog);
  for (const char* text :
       {"epoch,stage\n1,2\n", "epoch,minibatch,stage,probe,quantity,value\n1,2\n",
        "epoch,minibatch,stage,probe,quantity,value\n0,x,0,norms,gradient,1\n"}) {
    const Table made = table("{metric: probe.weight_gap.forward_relative, rows: label}",
                             {good, probed("b", text)});
    EXPECT_EQ(made.cells.at(1).at(0).failed, 1) << text;
  }
}

}  // namespace
}  // namespace pipewright
