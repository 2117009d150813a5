#include "core/schedule/partition.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// Of the best cut of a suffix: largest block, sum of squares, and how long its first block is.
struct Cut {
  double largest = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
  std::size_t first = 0;
  bool better_than(const Cut& other) const {
    return largest != other.largest ? largest < other.largest : squares < other.squares;
  }
};

}  // namespace

std::vector<std::int64_t> min_max_partition(std::span<const double> costs, int parts) {
  const std::size_t n = costs.size();
  PIPEWRIGHT_CHECK(parts >= 1 && static_cast<std::size_t>(parts) <= n, parts, " parts of ", n);
  std::vector<double> sum(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + costs[i];
  // best[p][i]: elements i … n−1 in p+1 blocks.
  std::vector<std::vector<Cut>> best(static_cast<std::size_t>(parts), std::vector<Cut>(n + 1));
  for (std::size_t i = 0; i < n; ++i) {
    const double all = sum[n] - sum[i];
    best[0][i] = {all, all * all, n - i};
  }
  for (std::size_t p = 1; p < best.size(); ++p)
    for (std::size_t i = 0; i + p < n; ++i)
      for (std::size_t length = 1; i + length + p <= n; ++length) {
        const Cut& rest = best[p - 1][i + length];
        const double block = sum[i + length] - sum[i];
        const Cut cut{std::max(block, rest.largest), block * block + rest.squares, length};
        if (cut.better_than(best[p][i])) best[p][i] = cut;
      }
  std::vector<std::int64_t> sizes;
  std::size_t at = 0;
  for (std::size_t p = best.size(); p-- > 0;) {
    sizes.push_back(static_cast<std::int64_t>(best[p][at].first));
    at += best[p][at].first;
  }
  return sizes;
}

}  // namespace pipewright
