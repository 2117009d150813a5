#include "core/schedule/partition.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// Of the best cut of a suffix: what it is judged by, and how long its first block is.
struct Cut {
  double value = std::numeric_limits<double>::infinity();
  std::size_t first = 0;
};

/// Dynamic programme over suffixes: `joined(block, rest)` judges a first block and the best cut of
/// the rest; smaller is better, shorter first blocks among equals.
template <class Joined>
std::vector<std::vector<Cut>> best_cuts(const std::vector<double>& sum, std::size_t parts,
                                        const Joined& joined) {
  const std::size_t n = sum.size() - 1;
  std::vector<std::vector<Cut>> best(parts, std::vector<Cut>(n + 1));  // [p][i]: i … n−1 in p+1
  for (std::size_t i = 0; i < n; ++i) best[0][i] = {joined(sum[n] - sum[i], 0), n - i};
  for (std::size_t p = 1; p < parts; ++p)
    for (std::size_t i = 0; i + p < n; ++i)
      for (std::size_t length = 1; i + length + p <= n; ++length) {
        const double value = joined(sum[i + length] - sum[i], best[p - 1][i + length].value);
        if (value < best[p][i].value || best[p][i].first == 0) best[p][i] = {value, length};
      }
  return best;
}

}  // namespace

std::vector<std::int64_t> min_max_partition(std::span<const double> costs, int parts) {
  const std::size_t n = costs.size();
  PIPEWRIGHT_CHECK(parts >= 1 && static_cast<std::size_t>(parts) <= n, parts, " parts of ", n);
  std::vector<double> sum(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + costs[i];
  const auto count = static_cast<std::size_t>(parts);
  const double largest =
      best_cuts(sum, count, [](double block, double rest) { return std::max(block, rest); })
          .back()[0]
          .value;
  const auto best = best_cuts(sum, count, [&](double block, double rest) {
    return block > largest ? std::numeric_limits<double>::infinity() : block * block + rest;
  });
  std::vector<std::int64_t> sizes;
  std::size_t at = 0;
  for (std::size_t p = best.size(); p-- > 0;) {
    sizes.push_back(static_cast<std::int64_t>(best[p][at].first));
    at += best[p][at].first;
  }
  return sizes;
}

}  // namespace pipewright
