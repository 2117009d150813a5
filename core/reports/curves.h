/// Learning curves: a metric over epochs, mean and deviation over the runs of a line.
#pragma once

#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/reports/plot_spec.h"

namespace pipewright {

struct CurvePoint {
  double epoch = 0;  ///< from 1; or modelled hours
  double mean = 0;
  double std = 0;  ///< of a sample (n−1); 0 with one run
  int runs = 0;
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;     ///< by epoch
  std::vector<CurvePoint> published;  ///< of one run each
};

struct Picture {
  std::string title;  ///< what its runs have in common; "" for the only picture
  std::string metric;
  bool percent = false;  ///< points are in percent
  std::string hours_on;  ///< the hardware, where hours are drawn against; "": epochs
  std::vector<Curve> curves;
};

/// Pictures and curves in the order in which the runs name them first. Runs that are not done give
/// the epochs they have. With PlotSpec::hardware the runs must have been modelled; published
/// curves, which have no such hours, are left out. Throws Error{Experiment} with all problems: keys
/// or metrics no run has, published columns that are not there.
std::vector<Picture> make_pictures(const PlotSpec& spec, const std::vector<RunRecord>& runs);

}  // namespace pipewright
