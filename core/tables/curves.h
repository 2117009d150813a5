// SPDX-License-Identifier: Apache-2.0
/// Curves: a metric over epochs, mini-batches, stages or the values of a key, as mean and interval
/// over the runs of a line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/records/run_record.h"
#include "core/tables/plot_spec.h"
#include "core/tables/samples.h"

namespace pipewright {

struct LinePoint {
  double x = 0;  ///< epoch, from 1, or modelled hours; or what Picture::x says
  double mean = 0;
  double reach = 0;  ///< half the interval around the mean (PlotInterval); 0 with one run
  int runs = 0;
  bool operator==(const LinePoint&) const = default;
};

/// Runs of a curve that ended in numbers that are not finite. x is the key's value, or the last
/// epoch or mini-batch that they have.
struct Diverged {
  double x = 0;
  int runs = 0;
  bool operator==(const Diverged&) const = default;
};

struct Curve {
  std::string name;  ///< "gpipe", or "gpipe = zb_h1" for lines that are equal everywhere
  std::vector<LinePoint> points;     ///< ascending by x
  std::vector<LinePoint> published;  ///< published points, without an interval
  std::vector<Diverged> diverged;    ///< ascending by x; none where x is the stage
  std::size_t color = 0;             ///< the same for a series in all pictures
  std::string series;                ///< its name; of curves that became one, that of the first

  int runs = 0;        ///< with a point, or diverged; each counts once
  bool keyed = false;  ///< x is a key, so that each point is of other runs
  /// How many runs are neither done nor diverged, by their state: they are left out or, where the
  /// line has no others, they are what is drawn.
  std::map<std::string, int> unfinished;
  std::string lost = "diverged";  ///< what the runs without a point did

  /// How many runs it has: "3 runs, 1 diverged" or, where x is a key, "3 runs per point, 2 of 12
  /// diverged"; "" if no point is of several runs and none diverged. Behind it stands what is
  /// unfinished: "3 runs; left out: 1 interrupted", or "unfinished: 1 running".
  std::string runs_text() const;
  /// Whether all runs between two neighbouring points have diverged, so that no line may join them.
  bool is_hole(double from, double to) const;
};

/// A curve of PlotSpec::over.
struct OverCurve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< in the order of the file
};

struct Picture {
  std::string title;  ///< what its runs have in common; "" if there is only one picture
  std::string metric;
  bool percent = false;  ///< points are in percent
  std::string hours_on;  ///< hardware, if the x-axis has modelled hours; "": none
  std::vector<Curve> curves;
  Axis x{.label = "epoch"};
  bool log_y = false;
  PlotInterval interval = PlotInterval::Deviation;
  std::optional<OverCurve> over;
};

/// Makes pictures and curves, laid out as laid_out() says, in the order of the keys that name them:
/// the first varies slowest. Curves that are equal everywhere become one. Means are over runs that
/// are done or diverged. Where a line has none of these, it has the epochs that all its unfinished
/// runs have, but nothing where a run is one point. With
/// PlotSpec::hardware the runs must have been modelled; published curves, which have no such hours,
/// are left out. Throws Error{Experiment} with all problems: keys or metrics that no run has,
/// published columns that do not exist, values that a logarithmic axis does not have; and
/// Error{Data} as samples_of() does.
std::vector<Picture> make_pictures(const PlotSpec& spec, const std::vector<RunRecord>& runs);

/// A remark on means over runs that differ in more than their seed ("Means mix optimizer.lr: …"),
/// of lines or maps; "" if there are none.
std::string mixing_note(const PlotSpec& spec, const std::vector<RunRecord>& runs);

/// The values of a run's keys as a title: "vgg16, stages 4". A key of several that the run does not
/// have, as an option of another scheme, is left out.
std::string title_of(const RunRecord& run, const std::vector<TableKey>& keys);

/// The points of PlotSpec::over that belong to a picture with this run. Records a problem for
/// columns that do not exist. Throws Error{Data} if the file cannot be read.
OverCurve over_curve(const PlotOver& over, const RunRecord& run, Problems& problems);

}  // namespace pipewright
