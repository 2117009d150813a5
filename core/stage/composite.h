/// The base of layers made of layers: each part is handed its run of the parameters and buffers.
#pragma once

#include <string>
#include <vector>

#include "core/stage/layer.h"

namespace pipewright {

/// Parameters and buffers of the parts lie one after another. A derived class adds its parts in its
/// constructor, ends it with check_names(), says in forward() what they do, and names them in
/// set_name().
class Composite : public Layer {
 public:
  std::vector<ParameterSpec> parameters() const override;
  std::vector<BufferSpec> buffers() const override;

 protected:
  struct Part {
    LayerPtr layer;
    std::string prefix;  ///< of its parameters' names
    std::size_t first_parameter, parameters, first_buffer, buffers;

    /// With the composite's parameters and buffers.
    at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> all_parameters,
                       std::span<at::Tensor> all_buffers, const Pass& pass) const;
    Tensors forward_all(const Tensors& x, std::span<const at::Tensor> all_parameters,
                        std::span<at::Tensor> all_buffers, const Pass& pass) const;
  };

  void add(LayerPtr layer, std::string prefix);
  /// A bug if two parameters or two buffers have one name.
  void check_names() const;

  std::vector<Part> parts_;

 private:
  std::size_t parameters_ = 0, buffers_ = 0;
};

}  // namespace pipewright
