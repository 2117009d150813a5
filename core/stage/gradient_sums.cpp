// SPDX-License-Identifier: Apache-2.0
#include "core/stage/gradient_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/nn/memory_format.h"
#include "core/tensors/torch.h"

namespace pipewright {

/// Each gradient is added as soon as it has been computed: it is still in the cache then, and its
/// memory becomes free for the next layer's gradient.
WeightGradients::WeightGradients(std::span<const at::Tensor> leaves, at::TensorOptions wide,
                                 std::optional<at::ScalarType> narrow, bool channels_last)
    : leaves_(leaves),
      wide_(wide.dtype().toScalarType()),
      narrow_(narrow),
      channels_last_(channels_last),
      sums_(leaves.size()),
      terms_(leaves.size(), 0) {
  if (narrow == at::kHalf) loss_scale_.emplace();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    leaves[i].register_hook([this, i](const at::Tensor& gradient) { return add(i, gradient); });
}

at::Tensor WeightGradients::widened(const at::Tensor& value) const {
  return narrow_ ? value.to(wide_) : value;
}

/// The sum of gradients in the wide format.
at::Tensor WeightGradients::unscaled(const at::Tensor& sum) const {
  return sum.scalar_type() == at::kHalf ? widened(sum).div_(scale()) : widened(sum);
}

void WeightGradients::record(std::size_t parameter, const at::Tensor& gradient) {
  at::Tensor& sum = (*recorded_)[parameter];
  const at::Tensor own = widened(gradient).mul(*adding_);
  sum = sum.defined() ? sum.add_(own) : own;
}

/// Adds a gradient and returns the sum so far, or zeros, so that autograd does not hold the
/// gradient itself. Gradients that a layer computes within its own forward are returned unchanged.
/// A sum is in the wide format, and so is a gradient with a factor. In float16 a first gradient
/// keeps the loss scale until it is added to another or used.
at::Tensor WeightGradients::add(std::size_t parameter, const at::Tensor& gradient) {
  if (!adding_ || !gradient.defined()) return gradient;
  const at::NoGradGuard no_grad;
  if (recorded_ != nullptr) record(parameter, gradient);
  const double factor = *adding_, unit = 1 / scale();
  at::Tensor& sum = sums_[parameter];
  int& terms = terms_[parameter];
  // The first term may share memory with autograd, a message or another parameter, so the second
  // term allocates a new sum; only that sum is updated in place.
  const bool narrow = narrow_ && gradient.scalar_type() == *narrow_;
  if (terms == 0 && factor == unit && (narrow || unit == 1))
    sum = gradient;
  else if (terms == 0)
    sum = narrow ? widened(gradient).mul_(factor) : gradient.mul(factor);
  else if (terms == 1 && !narrow)
    sum = at::add(sum, gradient, factor);
  else
    sum = unscaled(sum).add_(gradient, factor);
  ++terms;
  // Autograd wants the gradient's format and shape back; of zeros it then holds a single number.
  return sum.scalar_type() == gradient.scalar_type()
             ? sum
             : at::zeros({}, gradient.options()).expand_as(gradient);
}

/// Adds inside the product once there is a sum in memory of its own, as a first product is.
at::Tensor WeightGradients::add_product(const at::Tensor& parameter, const at::Tensor& left,
                                        const at::Tensor& right) {
  const auto leaf =
      std::ranges::find_if(leaves_, [&](const auto& l) { return l.is_same(parameter); });
  const auto at = static_cast<std::size_t>(leaf - leaves_.begin());
  PIPEWRIGHT_CHECK(at < leaves_.size(), "a product for no parameter of the stage");
  const at::NoGradGuard no_grad;
  at::Tensor& sum = sums_[at];
  if (!adding_ || !sum.defined() || sum.storage().use_count() > 1) return left.mm(right);
  if (recorded_ != nullptr) record(at, left.mm(right));
  sum.addmm_(left, right, 1, *adding_);
  ++terms_[at];
  return {};
}

at::Tensor WeightGradients::sent(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  const at::Tensor &sum = sums_[parameter], &leaf = leaves_[parameter];
  if (!sum.defined()) return at::zeros_like(leaf);
  if (sum.scalar_type() == leaf.scalar_type()) return sum.clone();
  at::Tensor narrowed = sum.mul(scale()).to(leaf.scalar_type());
  note_sent({narrowed});  // it may be infinite where the sum is not
  return narrowed;
}

void WeightGradients::prepare() {
  const at::NoGradGuard no_grad;
  for (at::Tensor& sum : sums_)
    if (sum.defined()) sum = laid_out(unscaled(sum), channels_last_);
  tell_of_sent();
}

/// Makes one number of a sum infinite if a gradient that was sent is not finite. Sums that have
/// memory of their own only keep their bits otherwise.
void WeightGradients::tell_of_sent() {
  const auto any = std::ranges::find_if(sums_, [](const at::Tensor& sum) { return sum.defined(); });
  if (sent_.empty() || any == sums_.end()) return;
  const at::Tensor finite = at::stack(std::exchange(sent_, {})).isfinite().all();
  at::Tensor number = any->as_strided({1}, {1});
  number.copy_(at::where(finite, number, at::full_like(number, HUGE_VAL)));
}

void WeightGradients::clear() {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].reset();
    terms_[i] = 0;
  }
}

void WeightGradients::note_sent(const Tensors& gradients) {
  if (!loss_scale_) return;
  for (at::Tensor& magnitude : magnitudes(gradients)) sent_.push_back(std::move(magnitude));
}

bool WeightGradients::discarded(int stage) {
  if (!loss_scale_ || !overflowed()) return false;
  loss_scale_->skip(stage);
  return true;
}

/// The gradients of the inputs count as well: the stage before this one cannot help it if they
/// arrive infinite.
bool WeightGradients::overflowed() {
  std::vector<at::Tensor> all = std::exchange(sent_, {});
  for (at::Tensor& own : magnitudes(sums_)) all.push_back(std::move(own));
  return !all.empty() && !at::stack(all).isfinite().all().item<bool>();
}

}  // namespace pipewright
