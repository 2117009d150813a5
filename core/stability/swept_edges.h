// SPDX-License-Identifier: Apache-2.0
/// The smallest edge of each point of a sweep, as plain values, and as text for a terminal, as
/// Markdown, as CSV and as a value for programs.
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/stability/stability_report.h"

namespace pipewright {

/// Points of a sweep that differ in their seed at most.
struct SweptEdge {
  std::string title;          ///< as `check` prints it, without the seed
  std::string candidate;      ///< what is compared: the point's label, else its scheme
  std::vector<Value> values;  ///< parallel to SweptEdges::keys; Null: the point has none
  int points = 1;
  double lr = 0;
  bool preconditioned = false;  ///< LinearRule::preconditioned
  std::string reason;           ///< why there is no edge; the rest is of points that have one

  double edge = 0;                ///< the smallest of a stage, learning rate × curvature
  int stage = 0;                  ///< the first one that has it
  int forward = 0, backward = 0;  ///< delays there, in updates
  int oldest = 0;                 ///< the largest delay of any stage
  bool known() const { return reason.empty(); }
};

/// Takes the smallest edge of a report and where it is.
void take(const StabilityReport& report, SweptEdge& edge);

struct SweptEdges {
  std::string name;               ///< of the experiment
  std::vector<std::string> keys;  ///< dotted keys that vary, but for train.seed
  std::vector<SweptEdge> points;  ///< in the sweep's order
  std::string remark;             ///< on what the edges leave out; may be empty
};

/// One sentence: which candidate tolerates the largest learning rate times curvature, among the
/// points that agree in all keys but the scheme's; and, if its weights are never old, which does
/// among those that read old ones.
std::string most_tolerant(const SweptEdges& sweep);

/// A table with a row for each point, and most_tolerant().
std::string swept_text(const SweptEdges& sweep);
/// One line for each point; the last column says why it has no edge.
std::string swept_csv(const SweptEdges& sweep);
/// {"name", "points": [{"title", "candidate", "varied": {…}, "edge", "stage", …}], "conclusion"};
/// an edge of null stands for one that does not exist, where every learning rate is stable.
Value swept_value(const SweptEdges& sweep);

}  // namespace pipewright
