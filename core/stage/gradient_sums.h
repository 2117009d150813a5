// SPDX-License-Identifier: Apache-2.0
/// The sums of a stage's weight gradients between two updates, in one number format or two, and
/// the scale of float16's.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <vector>

#include "core/nn/layer.h"
#include "core/nn/precision.h"

namespace pipewright {

/// Used by the thread of its stage. It is never moved: the hooks on the leaves hold its address.
class WeightGradients final : public GradientSums {
 public:
  /// `leaves` are the stage's parameters, which must stay where they are; `wide` has their number
  /// format, `narrow` that of activations in mixed precision. Float16 has a loss scale.
  WeightGradients(std::span<const at::Tensor> leaves, at::TensorOptions wide,
                  std::optional<at::ScalarType> narrow, bool channels_last);
  WeightGradients(const WeightGradients&) = delete;
  WeightGradients& operator=(const WeightGradients&) = delete;

  /// While one lives, gradients that autograd computes of the leaves are added, multiplied by
  /// `scale`; otherwise they are left to autograd.
  class Adding {
   public:
    Adding(WeightGradients& to, double scale) : place_(to.adding_) { place_ = scale; }
    ~Adding() { place_.reset(); }
    Adding(const Adding&) = delete;
    Adding& operator=(const Adding&) = delete;

   private:
    std::optional<double>& place_;
  };

  /// What has been added since the last update.
  struct Added {
    std::vector<at::Tensor> sums;  ///< as sums()
    std::vector<int> terms;        ///< in each sum
  };
  Added added() const { return {sums_, terms_}; }
  /// Puts what was added elsewhere in its place, and returns it.
  Added exchange(Added other) {
    sums_.swap(other.sums);
    terms_.swap(other.terms);
    return other;
  }

  /// One per leaf; undefined: none yet. In mixed precision, those of one backward may be in the
  /// narrow format; in float16 they are then multiplied by the loss scale.
  std::vector<at::Tensor>& sums() { return sums_; }
  /// Brings all of them to the wide format and the weights' memory format, to be summed over
  /// replicas. If a gradient that was sent is not finite, the sums are made so, too: all replicas
  /// see it then, and skip the update together. Does not wait for the device.
  void prepare();
  /// Begins anew, after an update.
  void clear();
  /// While `into` is set, what is added is also added to it, one tensor per leaf (undefined: none
  /// yet), in the wide format and memory of their own. Null: no longer.
  void record(std::vector<at::Tensor>* into) { recorded_ = into; }

  /// A copy of one of them as a gradient that is sent: in its leaf's format, and multiplied by the
  /// loss scale. It is noted as such.
  at::Tensor sent(std::size_t parameter);

  std::optional<LossScale>& loss_scale() { return loss_scale_; }
  const std::optional<LossScale>& loss_scale() const { return loss_scale_; }
  /// The loss scale; 1 without one.
  double scale() const { return loss_scale_ ? static_cast<double>(loss_scale_->scale) : 1; }
  /// Notes gradients that leave the stage, for discarded(). Does nothing without a loss scale.
  void note_sent(const Tensors& gradients);
  /// Whether the gradients since the last call are not to be applied: in float16, if one that was
  /// summed or sent is not finite. Then calls LossScale::skip(). Waits for the device.
  bool discarded(int stage);

  /// Adds a gradient of a leaf while an Adding lives. Returns what autograd may hold in its place.
  at::Tensor add(std::size_t parameter, const at::Tensor& gradient);
  /// The value in the wide format; itself where there is one format.
  at::Tensor widened(const at::Tensor& value) const;
  at::Tensor add_product(const at::Tensor& parameter, const at::Tensor& left,
                         const at::Tensor& right) override;

 private:
  void record(std::size_t parameter, const at::Tensor& gradient);
  at::Tensor unscaled(const at::Tensor& sum) const;
  void tell_of_sent();
  bool overflowed();

  std::span<const at::Tensor> leaves_;
  at::ScalarType wide_;
  std::optional<at::ScalarType> narrow_;
  bool channels_last_;
  std::optional<LossScale> loss_scale_;
  std::vector<at::Tensor> sums_;
  std::vector<int> terms_;        ///< number of terms in each sum
  std::optional<double> adding_;  ///< factor of the running pass; none: no pass adds
  std::vector<at::Tensor> sent_;  ///< magnitudes() of gradients sent since the last update
  std::vector<at::Tensor>* recorded_ = nullptr;
};

}  // namespace pipewright
