// SPDX-License-Identifier: Apache-2.0
/// The number formats of a training: `train.precision`.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/nn/layer.h"

namespace pipewright {

/// Mixed precision has two formats (Micikevicius et al., 2018; Kalamkar et al., 2019). Weights in
/// all their versions, sums of gradients, optimizer state, norms, statistics and losses are in the
/// wide one; products, activations and their gradients are in the narrow one.
struct Precision {
  std::string_view name = "float32";    ///< in experiment files and profiles
  at::ScalarType weights = at::kFloat;  ///< the wide format
  at::ScalarType values = at::kFloat;   ///< the narrow format; the wide one if there is one only

  /// The narrow format if precision is mixed.
  std::optional<at::ScalarType> narrow() const {
    return weights == values ? std::nullopt : std::optional(values);
  }
};

inline constexpr std::array<Precision, 4> kPrecisions{{
    {"float32", at::kFloat, at::kFloat},
    {"float64", at::kDouble, at::kDouble},
    {"bfloat16", at::kFloat, at::kBFloat16},
    {"float16", at::kFloat, at::kHalf},
}};

/// Dynamic loss scaling (Micikevicius et al., 2018) of one stage replica. Numbers below 6·10⁻⁸ are
/// 0 in float16, so the gradients of activations are computed multiplied by a power of two, the
/// scale; sums of weight gradients are divided by it again, in float32. The rule is that of
/// PyTorch's GradScaler with its defaults: an update whose gradients are not all finite is skipped
/// and halves the scale; 2,000 updates in a row double it.
///
/// Each stage has a scale of its own, because in a pipeline that is not drained no mini-batch has a
/// point at which all stages could agree on one. A gradient crosses an edge together with the scale
/// that it was computed at.
struct LossScale {
  static constexpr std::int64_t kDoubledAfter = 2000;              ///< updates in a row
  static constexpr std::int64_t kLargest = std::int64_t{1} << 40;  ///< of a model without gradients

  std::int64_t scale = 1 << 16;
  std::int64_t since = 0;    ///< updates since the scale changed
  std::int64_t skipped = 0;  ///< updates so far

  void updated();
  /// Throws Error{NotFinite} if the scale is 1 already.
  void skip(int stage);
  /// Brings gradients that were computed at the scale `sent`, an int64 scalar on their device, to
  /// this one. The device is not waited for. What overflows becomes infinite, so that the update is
  /// skipped.
  void adopt(Tensors& gradients, const at::Tensor& sent) const;
};

/// Sums of magnitudes, scalars in float32: each is finite if all numbers of its tensor are, because
/// float32 holds 10³³ times float16's largest number. Leaves out undefined tensors.
std::vector<at::Tensor> magnitudes(at::TensorList tensors);

/// Whether this machine's processor multiplies bfloat16 numbers.
bool has_bfloat16_instructions();
/// A remark for the user where the precision makes a training on the processor slow, or "".
std::string precision_remark(const Precision& precision, bool on_cpu,
                             bool instructions = has_bfloat16_instructions());

}  // namespace pipewright
