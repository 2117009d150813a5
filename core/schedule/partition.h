/// Cutting an ordered list of layers into stages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

/// Contiguous, non-empty blocks, `parts` of them, whose largest cost is the least possible; among
/// those the one with the least sum of squared costs, then the one whose first blocks are shortest.
/// Costs ≥ 0; requires 1 ≤ parts ≤ costs.size(). Returns the number of elements of each block.
/// Dynamic programme in O(parts · n²).
std::vector<std::int64_t> min_max_partition(std::span<const double> costs, int parts);

}  // namespace pipewright
