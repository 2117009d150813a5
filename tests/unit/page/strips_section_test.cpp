// SPDX-License-Identifier: Apache-2.0
// What probes measured of each stage: lines over the training, and the limits of sharpness.
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

TEST_F(StripsSections, HaveALineForEachStageAndAPointForEachMeasurement) {
  const std::string body = body_of(report_with(kSharpness));
  for (const char* const part : {"<title>stage 0, epoch 1, mini-batch 0: 10, measurement 1</title>",
                                 "<title>stage 0, epoch 2, mini-batch 0: 30, measurement 2</title>",
                                 "<title>stage 1, epoch 2, mini-batch 0: 6, measurement 2</title>",
                                 "<span>stage 1</span>", "sharpness.largest"})
    EXPECT_NE(body.find(part), std::string::npos) << part << "\n" << body;
  EXPECT_EQ(body.find("(limit"), std::string::npos) << "no edge is known";
}

TEST_F(StripsSections, SayWhichRunIsNotDone) {
  Report report = report_with(kSharpness);
  EXPECT_NE(body_of(report).find("<figcaption>one</figcaption>"), std::string::npos);
  report.runs[0].state = "interrupted";
  EXPECT_NE(body_of(report).find("<figcaption>one, interrupted</figcaption>"), std::string::npos);
}

TEST_F(StripsSections, TheLimitOfSharpnessFollowsTheLearningRate) {
  Report report = report_with(kSharpness);
  report.stage_edges[0] = {2, 3};  // over 0.1, then over 0.05
  const std::string body = body_of(report);
  EXPECT_NE(body.find("<span>stage 0 (limit 20–40)</span>"), std::string::npos) << body;
  EXPECT_NE(body.find("<span>stage 1 (limit 30–60)</span>"), std::string::npos) << body;
  EXPECT_NE(body.find("over the learning rate with which the epoch began"), std::string::npos);
  // Up to 1.5 times the largest value, 45, it is drawn.
  for (const char* const part :
       {"limit of stage 0: 20, measurement 1", "limit of stage 0: 40, measurement 2",
        "limit of stage 1: 30, measurement 1"})
    EXPECT_NE(body.find(part), std::string::npos) << part << "\n" << body;
  EXPECT_EQ(body.find("limit of stage 1: 60"), std::string::npos) << body;
}

TEST_F(StripsSections, AnEpochWithoutARecordedRateHasNoLimit) {
  Report report = report_with("7,0,0,sharpness,largest,10\n");
  report.stage_edges[0] = {2};
  EXPECT_EQ(body_of(report).find("(limit"), std::string::npos);
  EXPECT_EQ(body_of(report).find("limit of stage"), std::string::npos);
}

TEST_F(StripsSections, OtherProbesHaveNoLimits) {
  Report report = report_with("0,0,0,weight_gap,forward_relative,1\n");
  report.stage_edges[0] = {2};
  const std::string body = body_of(report);
  EXPECT_NE(body.find("Weight gap of the forward"), std::string::npos);
  EXPECT_EQ(body.find("limit"), std::string::npos) << body;
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
