// SPDX-License-Identifier: Apache-2.0
/// Error feedback (Seide et al., 2014; Karimireddy et al., 2019): the compression error e of a
/// tensor is added to the next one, v = x + e; e ← v − decoded(v).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "core/codecs/codec.h"
#include "core/codecs/sample_memory.h"

namespace pipewright {

enum class Feedback : std::uint8_t {
  None,
  Tensor,  ///< added to the next tensor of the same sizes: for gradients
  Sample   ///< added to the same sample in the next epoch: for activations
};

/// Reads the option `feedback`.
Feedback feedback_of(Options& options);

/// The errors that a sending end keeps. They exist in training only: evaluation neither uses nor
/// updates them. They have the loss scale of the gradients that they were lost from, and change it
/// with these, exactly: both scales are powers of two.
class ErrorFeedback {
 public:
  explicit ErrorFeedback(Feedback kind) : kind_(kind), by_sample_(at::kFloat) {}

  bool active(const at::Tensor& x, const CodecCall& call) const;
  /// x + e, or x if no error is kept.
  at::Tensor corrected(const at::Tensor& x, const CodecCall& call);
  /// Keeps `error` = v − decoded(v), if active.
  void keep(const at::Tensor& error, const CodecCall& call);

  /// With a loss scale the state names it: `scale`, one float64.
  NamedTensors state() const;
  /// A state that names no scale is of the next call's. Throws Error{Data} if it does not fit.
  void restore(const NamedTensors& state);

 private:
  void adopt(double loss_scale);

  Feedback kind_;
  double scale_ = 0;  ///< loss scale of all errors; 0: that of the next call
  std::map<std::vector<std::int64_t>, at::Tensor> by_sizes_;
  SampleMemory by_sample_;
};

}  // namespace pipewright
