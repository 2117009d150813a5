// SPDX-License-Identifier: Apache-2.0
#include "core/cost/partition.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// The best cut of a suffix of the list: its value, and the length of its first block.
struct Cut {
  double value = kImpossible;
  std::size_t first = 0;
};

/// Finds the best cut. It asks for the cost of every block in every part twice, so that cost must
/// be cheap.
class Search {
 public:
  Search(std::size_t layers, int parts, const BlockCost& cost)
      : layers_(layers), parts_(static_cast<std::size_t>(parts)), cost_(cost) {}

  std::vector<std::int64_t> run() const {
    const double largest =
        best_cuts([](double block, double rest) { return std::max(block, rest); }).back()[0].value;
    if (largest == kImpossible) return {};
    const auto best = best_cuts([&](double block, double rest) {
      return block > largest ? kImpossible : block * block + rest;
    });
    std::vector<std::int64_t> sizes;
    std::size_t at = 0;
    for (std::size_t p = best.size(); p-- > 0;) {
      sizes.push_back(static_cast<std::int64_t>(best[p][at].first));
      at += best[p][at].first;
    }
    return sizes;
  }

 private:
  /// Dynamic programme over suffixes. `joined(block, rest)` is the value of a first block followed
  /// by the best cut of the rest; smaller is better, and of equal values the shorter first block
  /// wins. The result [p][i] is for layers i … n−1 in the last p + 1 parts.
  template <class Joined>
  std::vector<std::vector<Cut>> best_cuts(const Joined& joined) const {
    const std::size_t n = layers_;
    std::vector<std::vector<Cut>> best(parts_, std::vector<Cut>(n + 1));
    for (std::size_t i = 0; i < n; ++i) best[0][i] = {joined(cost(i, n, 0), 0), n - i};
    for (std::size_t p = 1; p < parts_; ++p)
      for (std::size_t i = 0; i + p < n; ++i)
        for (std::size_t length = 1; i + length + p <= n; ++length) {
          const double rest = best[p - 1][i + length].value;
          const double value = rest == kImpossible ? rest : joined(cost(i, i + length, p), rest);
          if (value < best[p][i].value || best[p][i].first == 0) best[p][i] = {value, length};
        }
    return best;
  }

  double cost(std::size_t begin, std::size_t end, std::size_t parts_after) const {
    return cost_(begin, end, static_cast<int>(parts_ - 1 - parts_after));
  }

  std::size_t layers_, parts_;
  const BlockCost& cost_;
};

}  // namespace

std::vector<std::int64_t> min_max_partition(std::size_t layers, int parts, const BlockCost& cost) {
  PIPEWRIGHT_CHECK(parts >= 1 && static_cast<std::size_t>(parts) <= layers, parts, " parts of ",
                   layers);
  return Search(layers, parts, cost).run();
}

std::vector<std::int64_t> min_max_partition(std::span<const double> costs, int parts) {
  std::vector<double> sum(costs.size() + 1, 0);
  for (std::size_t i = 0; i < costs.size(); ++i) sum[i + 1] = sum[i] + costs[i];
  return min_max_partition(costs.size(), parts, [&](std::size_t begin, std::size_t end, int) {
    return sum[end] - sum[begin];
  });
}

}  // namespace pipewright
