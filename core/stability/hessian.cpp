// SPDX-License-Identifier: Apache-2.0
#include "core/stability/hessian.h"

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/stability/edge_text.h"
#include "core/stability/eigenvalues.h"

namespace pipewright {

std::string fault_of(const Hessian& hessian) {
  constexpr double kRounding = 1e-9;  // of written digits
  double largest = 0;
  for (const auto& row : hessian)
    for (const double number : row) {
      if (!std::isfinite(number)) return concat("has the entry ", number, "; expected finite ones");
      largest = std::max(largest, std::abs(number));
    }
  if (largest == 0) return "has no entry but 0, so every learning rate is stable";
  const auto size = static_cast<int>(hessian.size());
  SquareMatrix<double> matrix(size);
  for (int row = 0; row < size; ++row)
    for (int column = 0; column < size; ++column) {
      const double here = hessian[as_size(row)][as_size(column)];
      const double there = hessian[as_size(column)][as_size(row)];
      if (std::abs(here - there) > kRounding * largest)
        return concat("is not symmetric: row ", row, ", column ", column, " is ", here,
                      ", but the other way round ", there);
      matrix.at(row, column) = (here + there) / 2;
    }
  const double least = symmetric_eigenvalues(matrix).values.front();
  if (least < -kRounding * largest * size)
    return concat("has the negative eigenvalue ", short_text(least),
                  ", so its loss has no minimum and no learning rate is stable");
  return "";
}

}  // namespace pipewright
