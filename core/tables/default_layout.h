// SPDX-License-Identifier: Apache-2.0
/// The default layout of tables and pictures: which of the keys that a sweep varies name lines,
/// which stands across, and which divide the runs further.
#pragma once

#include <string>
#include <vector>

#include "core/records/run_record.h"
#include "core/tables/plot_spec.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// Keys that the runs vary, except label, train.seed and `ignored`, in order of first appearance.
std::vector<std::string> varied_keys(const std::vector<RunRecord>& runs,
                                     const std::vector<TableKey>& ignored);

/// Whether runs of one group have different values of the key. `groups`: the group of each run.
bool differs_within(const std::vector<std::size_t>& groups, const std::string& key,
                    const std::vector<RunRecord>& runs);

struct DefaultLayout {
  /// What is compared: the label where the file gives labels, or else the scheme with those of its
  /// options that vary, or else the first key that varies. Empty where nothing does.
  std::vector<std::string> lines;
  /// pipeline.stages where one line has several values of it, or workers where replicas vary in the
  /// place of stages; "" where neither does.
  std::string across;
  /// Keys in which runs of one line and one value across still differ, but for their seed.
  std::vector<std::string> further;
};

/// `labelled`: the file gives its runs labels. `taken`: keys that the file has given a place.
DefaultLayout default_layout(const std::vector<RunRecord>& runs, bool labelled,
                             const std::vector<TableKey>& taken);

/// The plot with lines where its section gives none: as default_layout() says. x is then what
/// stands across unless the section gives x, or needs epochs (modelled hours, published curves);
/// where nothing stands across and runs of one epoch were evaluated within it, minibatch.
/// Other keys divide the runs into pictures, or lines where the section gives pictures.
PlotSpec laid_out(PlotSpec spec, const std::vector<RunRecord>& runs);

/// The table with rows where its section gives none: of the further keys and the lines, which vary
/// fastest. What stands across makes the columns unless the section gives some, or metrics to stand
/// beside them.
TableSpec laid_out(TableSpec spec, const std::vector<RunRecord>& runs);

}  // namespace pipewright
