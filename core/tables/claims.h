// SPDX-License-Identifier: Apache-2.0
/// The `claims` section of an experiment file: sentences, each with a condition on the runs that
/// `table` can check.
///
///   claims:
///     - {say: PipeDream's accuracy falls with depth,
///        less: [{scheme.name: pipedream, pipeline.stages: 8},
///               {scheme.name: pipedream, pipeline.stages: 2}]}
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/records/run_record.h"
#include "core/tables/table_spec.h"

namespace pipewright {

/// The runs that have these values of these keys; or, of less and close, the mean of several
/// groups.
struct ClaimGroup {
  std::vector<std::pair<TableKey, std::string>> values;  ///< key and text, as key_text() has it
  std::string option;                                    ///< "claims[0].less[1]"
  Place place;
  std::vector<ClaimGroup> parts;  ///< groups whose mean it is, seed by seed; it then has no values

  /// "pipedream, stages 8", or "the mean of gpipe and pipedream"
  std::string name() const;
  /// Its parts, or itself if it has none.
  std::vector<const ClaimGroup*> single() const;
  bool has(const RunRecord& run) const;
};

/// All conditions that are given must hold.
struct Claim {
  std::string say;
  std::string option;                ///< "claims[0]"
  TableKey metric;                   ///< name "": that of the table
  std::vector<ClaimGroup> less;      ///< the mean of each is less than that of the next
  std::vector<ClaimGroup> close;     ///< the means of any two differ by less than `within`
  double within = 0;                 ///< in the metric's own unit; of accuracies 0.01 is one point
  std::vector<ClaimGroup> diverges;  ///< all runs end in a loss or weight that is not finite
  std::vector<ClaimGroup> finishes;  ///< all runs are done
  std::vector<ClaimGroup> learns;    ///< all runs are done, and the metric is as good as `floor`
  std::vector<ClaimGroup> learns_nothing;  ///< no run is: each diverges or ends worse than `floor`
  double floor = 0;                        ///< in the metric's own unit

  /// The groups of all conditions; parts in the place of their mean.
  std::vector<const ClaimGroup*> groups() const;
};

/// Reads `document.claims` (none without one). Throws Error{Experiment} with all problems.
std::vector<Claim> read_claims(const Value& document);

/// Records a problem for each key of a group that no run has, and for each value. Labels and seeds
/// are not judged where the runs have none.
void check_claims(const std::vector<Claim>& claims, const std::vector<RunRecord>& runs,
                  Problems& problems);

/// The options of one claim, for the JSON Schema and `describe`.
std::vector<OptionInfo> claim_options();

}  // namespace pipewright
