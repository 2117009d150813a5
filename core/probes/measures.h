// SPDX-License-Identifier: Apache-2.0
/// Norms and angles of tensors, and of lists of gradients in the order of a stage's layout.
/// Products are added up in float64. All wait for the tensors' device.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "core/stage/stage.h"

namespace pipewright {

using Gradients = std::vector<at::Tensor>;  ///< one per layout entry; undefined: none

/// The sum of squares.
double squares_of(const at::Tensor& tensor);
double squares_of(std::span<const at::Tensor> gradients);

/// The squared distance of two flat tensors [n].
double squares_between(const at::Tensor& a, const at::Tensor& b);

/// The root mean square of the difference of two of a stage's flat tensors, over its parameters
/// without the gaps.
double rms_between(const at::Tensor& a, const at::Tensor& b, const FlatLayout& layout);

/// How two gradients of the same parameters compare. Undefined ones count as 0.
struct GradientComparison {
  double cosine = 0;      ///< NaN if either is 0
  double norm_ratio = 0;  ///< |a| / |b|; NaN if b is 0
};
GradientComparison compare(std::span<const at::Tensor> a, std::span<const at::Tensor> b);

/// A copy of the gradients of the update that is about to run, before any gradient rule, in the
/// wide format and without loss scale.
Gradients unruled_gradients(Stage& stage);

}  // namespace pipewright
