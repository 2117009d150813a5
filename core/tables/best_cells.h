// SPDX-License-Identifier: Apache-2.0
/// The best and the worst cell of a table in one sentence, with the cells that cannot be
/// distinguished from them.
#pragma once

#include <optional>
#include <string>

#include "core/tables/table.h"

namespace pipewright {

struct BestCells {
  /// "Best: xpipe, workers 2 (86.39), not significantly better at the 5 % level than 7 others
  /// (gpipe, workers 2; …); worst: pipedream, workers 4 (22.60)", without a period. Cells are
  /// compared by compare_means(), pair by pair. Behind the mean of a cell with failed runs that
  /// have no number stands how many failed.
  std::string sentence;
  std::size_t run = 0;  ///< index of the best cell's first run in the records
};

/// Finds the best cells; nullopt for a table without numbers, or of a metric that is not judged.
/// Where all means are equal there is no worst.
std::optional<BestCells> best_cells(const Table& table);

}  // namespace pipewright
