/// The LSTM again, from its formulas and in float64, as layers_reference.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pipewright::test {

/// One direction over x [n, T, in]; parameters in the layer's order.
class LstmReference {
 public:
  LstmReference(const at::Tensor& x, const std::vector<at::Tensor>& parameters);

  at::Tensor output() const;  ///< [n, T, hidden]
  /// Of the input, then of each parameter, through the weights `backward`.
  std::vector<at::Tensor> gradients(const at::Tensor& g,
                                    const std::vector<at::Tensor>& backward) const;

 private:
  struct Step {
    at::Tensor i, f, g, o, c;  ///< after their functions; c the new cell
  };
  at::Tensor x_;
  std::vector<Step> steps_;
  std::vector<at::Tensor> h_, c_;  ///< [T + 1], from the zero state
};

/// Both directions, one sample after another, each without its padding.
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
