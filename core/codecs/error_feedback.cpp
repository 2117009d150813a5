// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/error_feedback.h"

#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr const char* kScale = "scale";

double scale_in(const at::Tensor& tensor) {
  const double scale =
      tensor.scalar_type() == at::kDouble && tensor.numel() == 1 ? tensor.item<double>() : 0;
  if (!(scale >= 1) || !std::isfinite(scale))
    throw Error(ErrorKind::Data, "a codec's state has a tensor 'scale' that is no loss scale");
  return scale;
}

}  // namespace

Feedback feedback_of(Options& options) {
  const std::string word = options.choice(
      "feedback", {"none", "tensor", "sample"}, "none",
      "Error feedback: what compression loses is added to what is sent next. tensor: to "
      "the next tensor of the same sizes, for gradients; sample: to the same sample's "
      "next, for activations.");
  if (word == "tensor") return Feedback::Tensor;
  return word == "sample" ? Feedback::Sample : Feedback::None;
}

bool ErrorFeedback::active(const at::Tensor& x, const CodecCall& call) const {
  if (!call.training || kind_ == Feedback::None || x.numel() == 0) return false;
  return kind_ == Feedback::Tensor || has_samples(x.sizes(), call);
}

/// Brings the errors to this loss scale. Tensors that state() has returned stay as they are.
void ErrorFeedback::adopt(double loss_scale) {
  const double before = std::exchange(scale_, loss_scale);
  if (before == 0 || before == loss_scale) return;
  for (auto& [sizes, error] : by_sizes_) error = error.mul(loss_scale / before);
  by_sample_.multiply(loss_scale / before);
}

at::Tensor ErrorFeedback::corrected(const at::Tensor& x, const CodecCall& call) {
  if (!active(x, call)) return x;
  adopt(call.loss_scale);
  if (kind_ == Feedback::Sample)
    return x + by_sample_.rows(call.samples, x.sizes().slice(1), x.device());
  const auto found = by_sizes_.find(x.sizes().vec());
  return found == by_sizes_.end() ? x : x + found->second.to(x.device());
}

void ErrorFeedback::keep(const at::Tensor& error, const CodecCall& call) {
  if (!active(error, call)) return;
  if (kind_ == Feedback::Sample) return by_sample_.keep(call.samples, error);
  at::Tensor& held = by_sizes_[error.sizes().vec()];
  // A gradient that overflowed must not stay in the error for ever.
  const at::Tensor before = held.defined() ? held.to(error.device()) : at::zeros_like(error);
  held = error.is_cpu() ? error : at::where(error.isfinite().all(), error, before);
}

NamedTensors ErrorFeedback::state() const {
  NamedTensors state = by_sample_.state();
  for (const auto& [sizes, error] : by_sizes_)
    state.emplace_back("error." + sizes_text(sizes), error);
  if (!state.empty() && scale_ > 0) state.emplace_back(kScale, at::full({1}, scale_, at::kDouble));
  return state;
}

void ErrorFeedback::restore(const NamedTensors& state) {
  by_sample_.restore(state);
  by_sizes_.clear();
  scale_ = 0;
  for (const auto& [name, tensor] : state) {
    if (name == kScale) scale_ = scale_in(tensor);
    if (!name.starts_with("error.")) continue;
    if (tensor.scalar_type() != at::kFloat || name.substr(6) != sizes_text(tensor.sizes()))
      throw Error(ErrorKind::Data, concat("a codec's state has a tensor '", name,
                                          "' of other sizes or not of float32"));
    by_sizes_[tensor.sizes().vec()] = tensor.clone();
  }
}

}  // namespace pipewright
