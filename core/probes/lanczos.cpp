// SPDX-License-Identifier: Apache-2.0
#include "core/probes/lanczos.h"

#include <cmath>
#include <vector>

#include "core/nn/initialize.h"
#include "core/stability/eigenvalues.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// The largest eigenvalue of the tridiagonal matrix, and the last entry of its eigenvector.
std::pair<double, double> largest_of(const std::vector<double>& diagonal,
                                     const std::vector<double>& beside) {
  const SymmetricEigenvalues all = tridiagonal_eigenvalues(diagonal, beside);
  const int end = all.vectors.size - 1;
  return {all.values.back(), all.vectors.at(end, end)};
}

double inner_product_of(const at::Tensor& a, const at::Tensor& b) {
  return (a * b).sum(at::kDouble).item<double>();
}

}  // namespace

Eigenvalue largest_eigenvalue(const std::function<at::Tensor(const at::Tensor&)>& product,
                              std::int64_t n, const at::TensorOptions& options, std::uint64_t seed,
                              const LanczosLimits& limits) {
  const at::NoGradGuard no_grad;
  Eigenvalue result;
  if (n == 0) return result;
  at::Tensor now = at::empty({n}, options), before;
  initialize(now, {.kind = Initializer::Kind::Normal, .a = 1}, seed, "lanczos");
  now.div_(std::sqrt(inner_product_of(now, now)));
  std::vector<double> diagonal, beside;
  while (result.products < limits.products && result.products < n) {
    at::Tensor next = product(now).clone();
    ++result.products;
    diagonal.push_back(inner_product_of(next, now));
    next.sub_(now, diagonal.back());
    if (before.defined()) next.sub_(before, beside.back());
    const double length = std::sqrt(inner_product_of(next, next));
    const auto [value, last] = largest_of(diagonal, beside);
    result.value = value;
    result.error = std::abs(length * last);
    if (result.error <= limits.tolerance * std::abs(value) || length == 0) break;
    beside.push_back(length);
    before = std::exchange(now, next.div_(length));
  }
  return result;
}

}  // namespace pipewright
