// SPDX-License-Identifier: Apache-2.0
// The sentence that ends a sweep, and its rows.
#include "core/stability/swept_edges.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

SweptEdge point(const std::string& scheme, int stages, double edge, int delay) {
  return {.title = scheme,
          .candidate = scheme,
          .values = {Value::of(scheme), Value::of(stages)},
          .lr = 0.1,
          .reason = "",
          .edge = edge,
          .forward = delay,
          .backward = delay,
          .oldest = delay};
}

SweptEdges swept(std::vector<SweptEdge> points) {
  return {.name = "s", .keys = {"scheme.name", "pipeline.stages"}, .points = std::move(points)};
}

TEST(SweptEdges, NameTheSchemeThatToleratesMost) {
  EXPECT_EQ(most_tolerant(swept({point("a", 2, 0.1, 1), point("b", 2, 0.25, 1)})),
            "The largest learning rate is tolerated by b (lr × curvature up to 0.25).");
}

TEST(SweptEdges, NameBothIfTheyAreEqual) {
  EXPECT_EQ(most_tolerant(swept({point("a", 2, 0.25, 1), point("b", 2, 0.25, 1)})),
            "The largest learning rate is tolerated by a and b (lr × curvature up to 0.25).");
}

TEST(SweptEdges, NameTheBestOfThoseThatReadOldWeightsBesideASynchronousOne) {
  EXPECT_EQ(
      most_tolerant(swept({point("sync", 2, 2, 0), point("a", 2, 0.1, 1), point("sync", 4, 2, 0),
                           point("a", 4, 0.05, 3)})),
      "The largest learning rate is tolerated by sync (lr × curvature up to 2); among schemes "
      "that read old weights, by a (lr × curvature up to 0.05 at stages 4, 0.1 at stages 2).");
}

TEST(SweptEdges, CompareOnlyPointsThatAgreeInTheRest) {
  EXPECT_EQ(
      most_tolerant(swept({point("a", 2, 0.5, 1), point("b", 2, 0.1, 1), point("a", 4, 0.01, 3),
                           point("b", 4, 0.05, 3)})),
      "The largest learning rate is tolerated by a at stages 2 (lr × curvature up to 0.5), b at "
      "stages 4 (lr × curvature up to 0.05).");
}

TEST(SweptEdges, SayWhereThereIsNone) {
  SweptEdge none = point("drawn", 2, 0, 0);
  none.reason = "no stability limit: \"drawn\", for one";
  const SweptEdges sweep = swept({none});
  EXPECT_EQ(most_tolerant(sweep), "No point of the sweep has a stability limit.");
  EXPECT_NE(swept_text(sweep).find(none.reason), std::string::npos);
  EXPECT_EQ(swept_csv(sweep),
            "scheme.name,pipeline.stages,candidate,points,lr,edge,stage,forward_delay,"
            "backward_delay,reason\n"
            "drawn,2,drawn,1,,,,,,\"no stability limit: \"\"drawn\"\", for one\"\n");
  EXPECT_EQ(swept_value(sweep).find("points")->items.at(0).find("reason")->text, none.reason);
  EXPECT_EQ(most_tolerant(swept({point("a", 2, 0, 1)})),
            "No learning rate is stable at any point of the sweep.");
}

}  // namespace
}  // namespace pipewright
