// SPDX-License-Identifier: Apache-2.0
#include "core/probes/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double product_of(const at::Tensor& a, const at::Tensor& b) {
  return (a * b).sum(at::kDouble).item<double>();
}

/// Adds up `of` over blocks of [n] elements; on a CPU what it computes of a block stays in the
/// cache.
template <class Of>
double sum_over_blocks(const at::Tensor& like, const Of& of) {
  constexpr std::int64_t kBlock = 1 << 15;  // elements
  const std::int64_t all = like.numel(), block = like.is_cpu() ? kBlock : all;
  double sum = 0;
  for (std::int64_t begin = 0; begin < all; begin += block)
    sum += of(begin, std::min(block, all - begin));
  return sum;
}

double root_of_mean(double squares, const FlatLayout& layout) {
  std::int64_t parameters = 0;
  for (const FlatLayout::Entry& entry : layout.entries) parameters += entry.size;
  return parameters == 0 ? 0 : std::sqrt(squares / static_cast<double>(parameters));
}

}  // namespace

double squares_of(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  if (!tensor.is_contiguous()) return product_of(tensor, tensor);
  const at::Tensor all = tensor.view({-1});
  return sum_over_blocks(all, [&](std::int64_t begin, std::int64_t size) {
    const at::Tensor part = all.narrow(0, begin, size);
    return product_of(part, part);
  });
}

double squares_of(std::span<const at::Tensor> gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) sum += squares_of(gradient);
  return sum;
}

double squares_between(const at::Tensor& a, const at::Tensor& b) {
  const at::NoGradGuard no_grad;
  return sum_over_blocks(a, [&](std::int64_t begin, std::int64_t size) {
    const at::Tensor part = a.narrow(0, begin, size) - b.narrow(0, begin, size);
    return product_of(part, part);
  });
}

double rms_between(const at::Tensor& a, const at::Tensor& b, const FlatLayout& layout) {
  return root_of_mean(squares_between(a, b), layout);
}

GradientComparison compare(std::span<const at::Tensor> a, std::span<const at::Tensor> b) {
  PIPEWRIGHT_CHECK(a.size() == b.size(), "gradients of different stages");
  const at::NoGradGuard no_grad;
  double product = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].defined() && b[i].defined()) product += product_of(a[i], b[i]);
  const double of_a = std::sqrt(squares_of(a)), of_b = std::sqrt(squares_of(b));
  return {.cosine = of_a > 0 && of_b > 0 ? product / (of_a * of_b) : kUndefined,
          .norm_ratio = of_b > 0 ? of_a / of_b : kUndefined};
}

Gradients unruled_gradients(Stage& stage) {
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
