// SPDX-License-Identifier: Apache-2.0
#include "core/stability/hessian.h"

#include <algorithm>
#include <cmath>

#include "core/base/as_size.h"
#include "core/base/printed.h"
#include "core/base/text.h"

namespace pipewright {

SquareMatrix<double> symmetric_part(const Hessian& hessian) {
  const auto size = static_cast<int>(hessian.size());
  SquareMatrix<double> matrix(size);
  for (int row = 0; row < size; ++row)
    for (int c = 0; c < size; ++c)
      matrix.at(row, c) =
          (hessian[as_size(row)][as_size(c)] + hessian[as_size(c)][as_size(row)]) / 2;
  return matrix;
}

std::string fault_of(const Hessian& hessian) {
  constexpr double kRounding = 1e-9;  // of written digits
  double largest = 0;
  for (const auto& row : hessian)
    for (const double number : row) {
      if (!std::isfinite(number)) return concat("has the entry ", number, "; expected finite ones");
      largest = std::max(largest, std::abs(number));
    }
  if (largest == 0) return "has no entry but 0, so every learning rate is stable";
  const std::size_t size = hessian.size();
  for (std::size_t row = 0; row < size; ++row)
    for (std::size_t column = 0; column < size; ++column)
      if (const double here = hessian[row][column], there = hessian[column][row];
          std::abs(here - there) > kRounding * largest)
        return concat("is not symmetric: row ", row, ", column ", column, " is ", here,
                      ", but the other way round ", there);
  const double least = symmetric_eigenvalues(symmetric_part(hessian)).values.front();
  if (least < -kRounding * largest * static_cast<double>(size))
    return concat("has the negative eigenvalue ", rounded_text(least),
                  ", so its loss has no minimum and no learning rate is stable");
  return "";
}

}  // namespace pipewright
