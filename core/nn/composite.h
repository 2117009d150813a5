// SPDX-License-Identifier: Apache-2.0
/// The base class of layers that are made of layers. Each part receives its own contiguous run of
/// the composite's parameters and buffers.
#pragma once

#include <string>
#include <vector>

#include "core/nn/layer.h"

namespace pipewright {

/// A derived class adds its parts in its constructor, calls check_names() at the end of it, runs
/// the parts in forward() and names them in set_name(). The parts' parameters and buffers follow
/// one another in the order of add().
class Composite : public Layer {
 public:
  std::vector<ParameterSpec> parameters() const override;
  std::vector<BufferSpec> buffers() const override;

 protected:
  struct Part {
    LayerPtr layer;
    std::string prefix;  ///< of the names of its parameters and buffers
    std::size_t first_parameter, parameters, first_buffer, buffers;

    /// Runs the part, given all parameters and buffers of the composite.
    at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> all_parameters,
                       std::span<at::Tensor> all_buffers, const Pass& pass) const;
    Tensors forward_all(const Tensors& x, std::span<const at::Tensor> all_parameters,
                        std::span<at::Tensor> all_buffers, const Pass& pass) const;
  };

  void add(LayerPtr layer, std::string prefix);
  /// Fails as an internal error if a name occurs twice among the parameters and buffers.
  void check_names() const;

  std::vector<Part> parts_;

 private:
  std::size_t parameters_ = 0, buffers_ = 0;
};

}  // namespace pipewright
