// SPDX-License-Identifier: Apache-2.0
/// Bases of layers: of those that give several tensors, of those that are made of layers, and of
/// those that are a function.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/nn/layer.h"

namespace pipewright {

/// A layer that takes or gives several tensors: it overrides forward_all(), and forward() gives the
/// first of them.
class BoundaryLayer : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override;
};

/// A layer without parameters and buffers, whose output is a function of its first tensor.
LayerPtr layer_of(std::function<at::Tensor(const at::Tensor&)> function);

/// A layer made of layers. Each part receives its own contiguous run of the composite's parameters
/// and buffers. It overrides forward(), or forward_all() as a BoundaryLayer does.
///
/// A derived class adds its parts in its constructor, calls check_names() at the end of it, and
/// runs the parts in forward(). The parts' parameters and buffers follow one another in the order
/// of add().
class Composite : public BoundaryLayer {
 public:
  std::vector<ParameterSpec> parameters() const override;
  std::vector<BufferSpec> buffers() const override;
  void set_name(std::string name) override;

 protected:
  struct Part {
    LayerPtr layer;
    std::string prefix;  ///< of the names of its parameters and buffers
    std::string suffix;  ///< follows the composite's name in the part's
    std::size_t first_parameter, parameters, first_buffer, buffers;

    /// Runs the part, given all parameters and buffers of the composite.
    at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> all_parameters,
                       std::span<at::Tensor> all_buffers, const Pass& pass) const;
    Tensors forward_all(const Tensors& x, std::span<const at::Tensor> all_parameters,
                        std::span<at::Tensor> all_buffers, const Pass& pass) const;
  };

  /// By default the part of the prefix "conv." is named "<this>.conv", and that of "" "<this>".
  void add(LayerPtr layer, std::string prefix);
  void add(LayerPtr layer, std::string prefix, std::string suffix);
  /// Fails as an internal error if a name occurs twice among the parameters and buffers.
  void check_names() const;

  std::vector<Part> parts_;

 private:
  std::size_t parameters_ = 0, buffers_ = 0;
};

}  // namespace pipewright
