// SPDX-License-Identifier: Apache-2.0
/// Rotary positions as a part of attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/base/mutex.h"
#include "core/nn/layers.h"

namespace pipewright {

/// Cosines and sines of the angles by which the pairs of each position are rotated, [tokens, d/2].
struct RotaryTable {
  at::Tensor cosines, sines;
};

/// The tables of one layer, made when they are first needed, once for each format and device, and
/// anew only where a pass has more positions. Any thread may ask.
class RotaryTables {
 public:
  explicit RotaryTables(RotaryOptions options) : options_(options) {}

  /// For `tokens` positions from `first` on, heads of `d` numbers, in the format and on the device
  /// of `like`; undefined on the meta device. Angles are computed in float64.
  RotaryTable of(std::int64_t first, std::int64_t tokens, std::int64_t d,
                 const at::Tensor& like) const PIPEWRIGHT_EXCLUDES(mutex_);

 private:
  RotaryTable made(std::int64_t positions, std::int64_t d, const at::Tensor& like) const;

  RotaryOptions options_;
  mutable Mutex mutex_;
  mutable std::vector<RotaryTable> made_ PIPEWRIGHT_GUARDED_BY(mutex_);
};

/// Rotates each pair (x_i, x_{i + d/2}) of x [..., tokens, d] by its angle a (Su et al., 2021):
/// (x_i cos a − x_{i + d/2} sin a, x_{i + d/2} cos a + x_i sin a).
at::Tensor rotated(const at::Tensor& x, const RotaryTable& table);

}  // namespace pipewright
