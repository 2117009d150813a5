// SPDX-License-Identifier: Apache-2.0
#include "core/probes/measures.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double product_of(const at::Tensor& a, const at::Tensor& b) {
  return (a * b).sum(at::kDouble).item<double>();
}

}  // namespace

double squares_of(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  return product_of(tensor, tensor);
}

double squares_of(std::span<const at::Tensor> gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) sum += squares_of(gradient);
  return sum;
}

double rms_of(const at::Tensor& flat, const FlatLayout& layout) {
  std::int64_t parameters = 0;
  for (const FlatLayout::Entry& entry : layout.entries) parameters += entry.size;
  return parameters == 0 ? 0 : std::sqrt(squares_of(flat) / static_cast<double>(parameters));
}

Comparison compare(std::span<const at::Tensor> a, std::span<const at::Tensor> b) {
  PIPEWRIGHT_CHECK(a.size() == b.size(), "gradients of different stages");
  const at::NoGradGuard no_grad;
  double product = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].defined() && b[i].defined()) product += product_of(a[i], b[i]);
  const double of_a = std::sqrt(squares_of(a)), of_b = std::sqrt(squares_of(b));
  return {.cosine = of_a > 0 && of_b > 0 ? product / (of_a * of_b) : kUndefined,
          .norm_ratio = of_b > 0 ? of_a / of_b : kUndefined};
}

Gradients applied_by(Stage& stage) {
  const at::NoGradGuard no_grad;
  Gradients all;
  const auto wide = stage.weights().latest().scalar_type();
  for (const at::Tensor& gradient : stage.gradients()) {
    at::Tensor& copy = all.emplace_back();
    if (!gradient.defined()) continue;
    copy = gradient.to(wide, /*non_blocking=*/false, /*copy=*/true);
    if (gradient.scalar_type() == at::kHalf && stage.loss_scale())
      copy.div_(static_cast<double>(stage.loss_scale()->scale));
  }
  return all;
}

}  // namespace pipewright
