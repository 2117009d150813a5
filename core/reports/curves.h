// SPDX-License-Identifier: Apache-2.0
/// Learning curves: a metric over epochs, as mean and standard deviation over the runs of a line.
#pragma once

#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/reports/plot_spec.h"

namespace pipewright {

struct CurvePoint {
  double epoch = 0;  ///< epoch, from 1, or modelled hours
  double mean = 0;
  double std = 0;  ///< sample standard deviation (n − 1); 0 with one run
  int runs = 0;
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;     ///< ascending by epoch
  std::vector<CurvePoint> published;  ///< published points, without deviation
};

struct Picture {
  std::string title;  ///< what its runs have in common; "" if there is only one picture
  std::string metric;
  bool percent = false;  ///< points are in percent
  std::string hours_on;  ///< hardware, if the x-axis has modelled hours; "": epochs
  std::vector<Curve> curves;
};

/// Makes pictures and curves, in order of first appearance in the runs. Unfinished runs contribute
/// the epochs that they have. With PlotSpec::hardware the runs must have been modelled; published
/// curves, which have no such hours, are left out. Throws Error{Experiment} with all problems: keys
/// or metrics that no run has, and published columns that do not exist.
std::vector<Picture> make_pictures(const PlotSpec& spec, const std::vector<RunRecord>& runs);

}  // namespace pipewright
