// SPDX-License-Identifier: Apache-2.0
// Strips of what probes measured: bars over the training, and the limits of sharpness.
#include "core/page/sections.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

constexpr const char* kHeader = "epoch,minibatch,stage,probe,quantity,value\n";

class StripsSections : public RunFolders {
 protected:
  /// A report of one run of two epochs, of which the second has half the learning rate.
  Report report_with(const std::string& probes) const {
    const std::string epochs = "epoch,test_accuracy,lr\n0,0.5,0.1\n1,0.6,0.05\n";
    Report report;
    report.runs = {run("one", "a", "done", "{name: x}", epochs)};
    put("one/probes.csv", kHeader + probes);
    return report;
  }
  static std::string body_of(const Report& report) { return strips_section(report).body; }
};

constexpr const char* kSharpness =
    "0,0,0,sharpness,largest,10\n1,0,0,sharpness,largest,30\n"
    "0,0,1,sharpness,largest,5\n1,0,1,sharpness,largest,6\n";

TEST_F(StripsSections, HaveALaneForEachStageAndABarForEachMeasurement) {
  const std::string body = body_of(report_with(kSharpness));
  for (const char* const part : {"<title>stage 0, epoch 1, mini-batch 0: 10</title>",
                                 "<title>stage 0, epoch 2, mini-batch 0: 30</title>",
                                 "<title>stage 1, epoch 2, mini-batch 0: 6</title>",
                                 "All bars have one scale, up to 30;", ">20</text>"})
    EXPECT_NE(body.find(part), std::string::npos) << part << "\n" << body;
  EXPECT_EQ(body.find(">limit"), std::string::npos) << "no edge is known";
}

TEST_F(StripsSections, TheLimitOfSharpnessFollowsTheLearningRate) {
  Report report = report_with(kSharpness);
  report.stage_edges[0] = {2, 2};
  const std::string body = body_of(report);
  EXPECT_NE(body.find("limit 20–40</text>"), std::string::npos) << body;
  EXPECT_NE(body.find("over the learning rate with which the epoch began"), std::string::npos);
  // A lane has room for 34 of 26 / 30 pixels a unit, so for the limit of the first epoch alone.
  EXPECT_NE(body.find("<path class=\"limit\" d=\"M80 13.67h320\"/>"), std::string::npos) << body;
}

TEST_F(StripsSections, AnEpochWithoutARecordedRateHasNoLimit) {
  Report report = report_with("7,0,0,sharpness,largest,10\n");
  report.stage_edges[0] = {2};
  EXPECT_EQ(body_of(report).find("</text><path class=\"limit\""), std::string::npos);
  EXPECT_EQ(body_of(report).find(">limit"), std::string::npos);
}

TEST_F(StripsSections, OtherProbesHaveNoLimits) {
  Report report = report_with("0,0,0,weight_gap,forward_relative,1\n");
  report.stage_edges[0] = {2};
  const std::string body = body_of(report);
  EXPECT_NE(body.find("Weight gap of the forward"), std::string::npos);
  EXPECT_EQ(body.find(">limit"), std::string::npos) << body;
}

TEST_F(StripsSections, HaveOneRunForEachSettingThoughLabelsHaveSeedsInThem) {
  Report report;
  for (const char* const lr : {"0.1", "0.2"})
    for (const int seed : {1, 2}) {
      const std::string label = concat(lr, "-", seed);
      const std::string varied =
          concat("{label: ", label, ", optimizer.lr: ", lr, ", train.seed: ", seed, "}");
      report.runs.push_back(run(label, label, "done", "{name: x}", {}, varied));
      put(label + "/probes.csv", std::string(kHeader) + "0,0,0,weight_gap,forward_relative,1\n");
    }
  const std::string body = body_of(report);
  EXPECT_NE(body.find("<figcaption>0.1-1</figcaption>"), std::string::npos) << body;
  EXPECT_NE(body.find("<figcaption>0.2-1</figcaption>"), std::string::npos) << body;
  EXPECT_EQ(body.find("-2</figcaption>"), std::string::npos) << body;
}

TEST_F(StripsSections, SayWhichEdgesAreNotDrawn) {
  Report report;
  report.edges_notes = {"No edge of <some> setting."};
  EXPECT_NE(body_of(report).find("No edge of &lt;some&gt; setting."), std::string::npos);
}

}  // namespace
}  // namespace pipewright
