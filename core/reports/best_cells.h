/// The best and the worst cell of a table in one sentence, with those that cannot be told from
/// them.
#pragma once

#include <optional>
#include <string>

#include "core/reports/table.h"

namespace pipewright {

struct BestCells {
  /// "Best: xpipe, workers 2 (86.39) and 7 others that cannot be told from it (gpipe, workers
  /// 2; …); worst: pipedream, workers 4 (22.60)", without a period. Cells are told apart by
  /// mean_difference(), each pair by itself.
  std::string sentence;
  std::size_t run = 0;  ///< the first of the best cell: an index into the records
};

/// nullopt for a table without numbers.
std::optional<BestCells> best_cells(const Table& table);

}  // namespace pipewright
