// SPDX-License-Identifier: Apache-2.0
/// Cutting an ordered list of layers into stages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace pipewright {

/// Cuts a list of costs into `parts` contiguous, non-empty blocks whose largest cost is the least
/// possible. Among such cuts it chooses the one with the least sum of squared costs, then the one
/// whose first blocks are shortest. Requires costs ≥ 0 and 1 ≤ parts ≤ costs.size(). Returns the
/// number of elements of each block. Dynamic programme in O(parts · n · (log n + b)), where b
/// layers are in a block.
std::vector<std::int64_t> min_max_partition(std::span<const double> costs, int parts);

/// The cost of the layers [begin, end) as part number `part`; infinity if they cannot be that part.
using BlockCost = std::function<double(std::size_t begin, std::size_t end, int part)>;

/// As above, for blocks whose cost is not a sum: with communication at their ends, say, or if some
/// do not fit a part. Empty when every cut has an impossible block.
std::vector<std::int64_t> min_max_partition(std::size_t layers, int parts, const BlockCost& cost);

}  // namespace pipewright
