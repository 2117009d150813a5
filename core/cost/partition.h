/// Cutting an ordered list of layers into stages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace pipewright {

/// Contiguous, non-empty blocks, `parts` of them, whose largest cost is the least possible; among
/// those the one with the least sum of squared costs, then the one whose first blocks are shortest.
/// Costs ≥ 0; requires 1 ≤ parts ≤ costs.size(). Returns the number of elements of each block.
/// Dynamic programme in O(parts · n²).
std::vector<std::int64_t> min_max_partition(std::span<const double> costs, int parts);

/// What the layers [begin, end) cost as that part; infinity where they cannot be it.
using BlockCost = std::function<double(std::size_t begin, std::size_t end, int part)>;

/// The same for blocks whose cost is no sum: of communication at their ends, or where some do not
/// fit a part. Empty when every cut has an impossible block.
std::vector<std::int64_t> min_max_partition(std::size_t layers, int parts, const BlockCost& cost);

}  // namespace pipewright
