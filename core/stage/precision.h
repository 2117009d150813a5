// SPDX-License-Identifier: Apache-2.0
/// The number formats of a training: `train.precision`.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

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

inline constexpr std::array<Precision, 3> kPrecisions{{
    {"float32", at::kFloat, at::kFloat},
    {"float64", at::kDouble, at::kDouble},
    {"bfloat16", at::kFloat, at::kBFloat16},
}};

/// Whether this machine's processor multiplies bfloat16 numbers.
bool has_bfloat16_instructions();
/// A remark for the user where the precision makes a training on the processor slow, or "".
std::string precision_remark(const Precision& precision, bool on_cpu,
                             bool instructions = has_bfloat16_instructions());

}  // namespace pipewright
