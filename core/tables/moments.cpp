// SPDX-License-Identifier: Apache-2.0
#include "core/tables/moments.h"

#include <cmath>
#include <numeric>

#include "core/base/text.h"

namespace pipewright {

double Moments::std() const {
  return std::sqrt(variance);
}

Moments moments_of(std::span<const double> values) {
  Moments m{.count = static_cast<double>(values.size()), .mean = kNoNumber, .variance = kNoNumber};
  if (values.empty()) return m;
  m.mean = std::accumulate(values.begin(), values.end(), 0.) / m.count;
  if (values.size() < 2) return m;
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  m.variance = squares / (m.count - 1);
  return m;
}

}  // namespace pipewright
