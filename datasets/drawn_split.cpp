// SPDX-License-Identifier: Apache-2.0
#include "datasets/drawn_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error_at.h"
#include "core/base/random.h"
#include "core/base/wording.h"

namespace pipewright {

DrawnSplit::DrawnSplit(Options& options, double fallback)
    : split_(options.number("split", fallback,
                            "The test samples of what has one part: below 1 a share of all "
                            "samples, from 1 on their number. They are drawn by `seed`.",
                            kNotNegative)),
      seed_(static_cast<std::uint64_t>(options.integer(
          "seed", 0, "Seed of the split, which train.seed does not change.", kNotNegative))),
      where_(options.where("split").text()) {
  if (split_ > 1 && split_ != std::floor(split_))
    options.problem("split",
                    concat("is ", split_, "; expected a share below 1, or a whole number"));
}

std::array<std::vector<std::int64_t>, 2> DrawnSplit::draw(std::int64_t samples,
                                                          const std::string& source) const {
  constexpr double kMost = 9e15;  // fits into 64 bits
  const double share = split_ < 1 ? split_ * static_cast<double>(samples) : split_;
  const std::int64_t test = std::max<std::int64_t>(1, std::llround(std::min(share, kMost)));
  if (test >= samples)
    throw experiment_error(where_, "dataset.split takes ", counted(test, "sample"), " of the ",
                           samples, " in ", source, "; none are left to train on");
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  const RandomStream stream(seed_, "dataset.split");
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[stream.below(i, i)]);
  const auto border = order.end() - test;
  std::array parts{std::vector(order.begin(), border), std::vector(border, order.end())};
  for (std::vector<std::int64_t>& part : parts) std::ranges::sort(part);
  return parts;
}

}  // namespace pipewright
