// SPDX-License-Identifier: Apache-2.0
#include "core/cost/partition.h"

#include <algorithm>
#include <limits>
#include <utility>

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
  /// `grows`: a block with one more layer behind it costs no less.
  Search(std::size_t layers, int parts, const BlockCost& cost, bool grows)
      : layers_(layers), parts_(static_cast<std::size_t>(parts)), cost_(cost), grows_(grows) {}

  std::vector<std::int64_t> run() const {
    const auto all = [](std::size_t, std::size_t) { return true; };
    const auto larger = [](double block, double rest) { return std::max(block, rest); };
    const double largest = grows_ ? least_largest() : best_cuts(larger, all).back()[0].value;
    if (largest == kImpossible) return {};
    const auto squares = [&](double block, double rest) {
      return block > largest ? kImpossible : block * block + rest;
    };
    // Whether so many parts before layer i and from it on can hold their layers; where blocks cost
    // sums, few can.
    const auto fits = [&](std::size_t parts_after, std::size_t i) {
      constexpr double kRounding = 1 + 1e-9;
      const auto most = [&](std::size_t parts) {
        return kRounding * static_cast<double>(parts) * largest;
      };
      return !grows_ || (cost(i, layers_, 0) <= most(parts_after + 1) &&
                         cost(0, i, 0) <= most(parts_ - 1 - parts_after));
    };
    const auto best = best_cuts(squares, fits);
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
  template <class Joined, class Fits>
  std::vector<std::vector<Cut>> best_cuts(const Joined& joined, const Fits& fits) const {
    const std::size_t n = layers_;
    std::vector<std::vector<Cut>> best(parts_, std::vector<Cut>(n + 1));
    for (std::size_t i = 0; i < n; ++i) best[0][i] = {joined(cost(i, n, 0), 0), n - i};
    for (std::size_t p = 1; p < parts_; ++p)
      for (std::size_t i = 0; i + p < n; ++i) {
        if (!fits(p, i)) continue;
        for (std::size_t length = 1; i + length + p <= n; ++length) {
          const double rest = best[p - 1][i + length].value;
          const bool first = best[p][i].first == 0;
          if (rest == kImpossible && !first) continue;
          const double block = cost(i, i + length, p);
          const double value = rest == kImpossible ? rest : joined(block, rest);
          if (value < best[p][i].value || first) best[p][i] = {value, length};
          // What follows a longer block can only add to it.
          if (grows_ && !first && joined(block, 0) >= best[p][i].value) break;
        }
      }
    return best;
  }

  /// The least possible largest cost of a block, if costs grow with blocks. With a longer first
  /// block its own cost grows and that of the rest falls, so the best length is where they meet.
  double least_largest() const {
    const std::size_t n = layers_;
    std::vector<double> rest(n + 1, kImpossible), now(n + 1, kImpossible);
    for (std::size_t i = 0; i < n; ++i) rest[i] = cost(i, n, 0);
    for (std::size_t p = 1; p < parts_; ++p) {
      for (std::size_t i = 0; i + p < n; ++i) {
        const std::size_t most = n - p - i;
        std::size_t met = 1;  // the first length whose block costs no less
        for (std::size_t end = most + 1; met < end;) {
          const std::size_t middle = met + (end - met) / 2;
          if (cost(i, i + middle, p) < rest[i + middle])
            met = middle + 1;
          else
            end = middle;
        }
        now[i] = met > most ? kImpossible : cost(i, i + met, p);
        if (met > 1) now[i] = std::min(now[i], rest[i + met - 1]);
      }
      rest = std::exchange(now, std::vector<double>(n + 1, kImpossible));
    }
    return rest[0];
  }

  double cost(std::size_t begin, std::size_t end, std::size_t parts_after) const {
    return cost_(begin, end, static_cast<int>(parts_ - 1 - parts_after));
  }

  std::size_t layers_, parts_;
  const BlockCost& cost_;
  bool grows_;
};

std::vector<std::int64_t> best_partition(std::size_t layers, int parts, const BlockCost& cost,
                                         bool grows) {
  PIPEWRIGHT_CHECK(parts >= 1 && static_cast<std::size_t>(parts) <= layers, parts, " parts of ",
                   layers);
  return Search(layers, parts, cost, grows).run();
}

}  // namespace

std::vector<std::int64_t> min_max_partition(std::size_t layers, int parts, const BlockCost& cost) {
  return best_partition(layers, parts, cost, false);
}

std::vector<std::int64_t> min_max_partition(std::span<const double> costs, int parts) {
  std::vector<double> sum(costs.size() + 1, 0);
  for (std::size_t i = 0; i < costs.size(); ++i) sum[i + 1] = sum[i] + costs[i];
  const BlockCost cost = [&](std::size_t begin, std::size_t end, int) {
    return sum[end] - sum[begin];
  };
  return best_partition(costs.size(), parts, cost, true);
}

}  // namespace pipewright
