// SPDX-License-Identifier: Apache-2.0
/// A residual stream that stays in a subspace: x = z Uᵀ + E₀[token] with a fixed matrix U of
/// orthonormal columns and a fixed vector E₀[token] for each token. What blocks add to x is U times
/// what they add to z, so that the coordinates z and the token say all of x
/// (PluralisResearch/ProtocolNanoGPT, 2026-09-24; Ramasinghe et al., 2025, arXiv:2506.01260).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/nn/layer.h"

namespace pipewright {

/// U and E₀ of so many tokens, numbers and coordinates: functions of these three alone, made when
/// they are first needed, once for each format and device. Any thread may ask.
class Subspace {
 public:
  struct Tables {
    at::Tensor directions;  ///< U [width, coordinates]
    at::Tensor origins;     ///< E₀ [tokens, width], with a standard deviation of 0.02
  };

  /// `coordinates` ≤ `width`.
  Subspace(std::int64_t tokens, std::int64_t width, std::int64_t coordinates)
      : tokens_(tokens), width_(width), coordinates_(coordinates) {}

  Tables tables(const at::Tensor& like) const PIPEWRIGHT_EXCLUDES(mutex_);

  /// The numbers in both tables.
  std::int64_t numbers() const { return width_ * (tokens_ + coordinates_); }

  /// Tokens as they cross an edge, in two bytes where that suffices, and back.
  at::Tensor narrow(const at::Tensor& tokens) const;
  at::Tensor wide(const at::Tensor& narrow) const;

 private:
  bool in_two_bytes() const { return tokens_ <= 65'536; }

  std::int64_t tokens_, width_, coordinates_;
  mutable Mutex mutex_;
  mutable std::vector<Tables> made_ PIPEWRIGHT_GUARDED_BY(mutex_);
};

/// A model with numbers beside parameters and buffers that each process holds once for its stages.
class FixedNumbers {
 public:
  virtual ~FixedNumbers() = default;
  virtual std::int64_t fixed_numbers() const = 0;
};

/// Puts the tokens beside what `embedding` makes of them: {int64 ids} to {z, narrow ids}.
LayerPtr with_tokens(LayerPtr embedding, std::shared_ptr<const Subspace> subspace);
/// {z [batch, tokens, coordinates], narrow ids, …} to {z Uᵀ + E₀[ids], …}; `keeps` the ids or not.
LayerPtr out_of_subspace(std::shared_ptr<const Subspace> subspace, bool keeps = true);

}  // namespace pipewright
