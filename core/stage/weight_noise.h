// SPDX-License-Identifier: Apache-2.0
/// Noise on the weights that passes read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "core/nn/layer.h"
#include "core/optim/optimizer.h"

namespace pipewright {

/// The factors 1 + σn of the weights of one micro-batch, with n from N(0, 1) for each weight. They
/// are a function of the seed, the parameter's name, the mini-batch and the micro-batch's first
/// sample, which tells replicas apart, too: all passes of a micro-batch have the same factors, in
/// every execution and under every cut.
class WeightNoise {
 public:
  /// `layout` must outlive it.
  WeightNoise(double size, const FlatLayout& layout, const at::TensorOptions& options);

  /// Flat, with zeros in the gaps; valid until the next call.
  const at::Tensor& factors(const Pass& pass);

 private:
  void draw(std::size_t parameter, const Pass& pass);

  double size_;
  const FlatLayout& layout_;
  std::vector<std::uint64_t> names_;  ///< hashes
  at::Tensor factors_;
  using MicroBatch = std::tuple<int, int, std::int64_t>;  ///< epoch, mini-batch, first sample
  MicroBatch drawn_{-1, -1, -1};                          ///< of the factors that are there
};

}  // namespace pipewright
