// SPDX-License-Identifier: Apache-2.0
/// Samples: the points that one run contributes to a picture, before means over runs are taken.
#pragma once

#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/tables/plot_spec.h"

namespace pipewright {

/// The values of an axis that are no numbers, such as names of schemes, stand at 0, 1, …
struct Axis {
  std::string label;
  bool log = false;
  bool keyed = false;              ///< its values are those of a key, each of which has a tick
  std::vector<std::string> names;  ///< of values that are no numbers; empty: all are numbers

  /// Where a key's text stands on the axis.
  double position(const std::string& text) const;
};

/// The axis of a key's values; of numbers if all of the runs' values are numbers. Records a problem
/// for values that a logarithmic axis does not have, and for a logarithm of names.
Axis key_axis(const TableKey& key, const char* what, bool log, const std::vector<RunRecord>& runs,
              Problems& problems);

struct Sample {
  double x = 0;
  double value = 0;   ///< in the metric's own unit
  std::string stage;  ///< "stage 2" where each stage has its own line, else ""
};

/// The samples of a run for PlotSpec::x and PlotSpec::metric, in ascending order of x for each
/// stage. A run that is one point (over_key()) must be done; others contribute what they have.
/// `axis`: that of x. Throws Error{Data} if probes.csv is damaged, and if x is minibatch and the
/// run of several epochs has no steps.csv to count their mini-batches.
std::vector<Sample> samples_of(const RunRecord& run, const PlotSpec& spec, const Axis& axis);

}  // namespace pipewright
