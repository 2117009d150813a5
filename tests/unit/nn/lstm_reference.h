// SPDX-License-Identifier: Apache-2.0
/// A second implementation of the LSTM, from its formulas, in float64 (see layers_reference.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright::test {

/// One direction of an LSTM over x [n, T, in]. Parameters are in the layer's order.
class LstmReference {
 public:
  LstmReference(const at::Tensor& x, const std::vector<at::Tensor>& parameters);

  at::Tensor output() const;  ///< [n, T, hidden]
  /// Gradients of the input, then of each parameter, computed with the weights `backward`.
  std::vector<at::Tensor> gradients(const at::Tensor& g,
                                    const std::vector<at::Tensor>& backward) const;

 private:
  struct Step {
    at::Tensor i, f, g, o, c;  ///< gates after their activations; c is the new cell state
  };
  at::Tensor x_;
  std::vector<Step> steps_;
  std::vector<at::Tensor> h_, c_;  ///< [T + 1], from the zero state
};

/// Both directions, computed sample by sample, each without its padding.
class BidirectionalLstmReference {
 public:
  BidirectionalLstmReference(const at::Tensor& x, const std::vector<std::int64_t>& lengths,
                             const std::vector<at::Tensor>& parameters);

  at::Tensor output() const { return output_; }
  std::vector<at::Tensor> gradients(const at::Tensor& g,
                                    const std::vector<at::Tensor>& backward) const;

 private:
  at::Tensor x_, output_;
  std::vector<std::int64_t> lengths_;
  std::vector<LstmReference> forth_, back_;
};

}  // namespace pipewright::test
