// SPDX-License-Identifier: Apache-2.0
#include "core/nn/composite.h"

#include <set>
#include <utility>

#include "core/base/error.h"

namespace pipewright {
namespace {

class FunctionLayer final : public Layer {
 public:
  explicit FunctionLayer(std::function<at::Tensor(const at::Tensor&)> function)
      : function_(std::move(function)) {}

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return function_(input);
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> function_;
};

}  // namespace

at::Tensor BoundaryLayer::forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                                  std::span<at::Tensor> buffers, const Pass& pass) const {
  return forward_all({input}, parameters, buffers, pass)[0];
}

LayerPtr layer_of(std::function<at::Tensor(const at::Tensor&)> function) {
  return std::make_shared<FunctionLayer>(std::move(function));
}

std::vector<ParameterSpec> Composite::parameters() const {
  std::vector<ParameterSpec> specs;
  for (const Part& part : parts_)
    for (ParameterSpec& spec : part.layer->parameters()) {
      spec.name = part.prefix + spec.name;
      specs.push_back(std::move(spec));
    }
  return specs;
}

std::vector<BufferSpec> Composite::buffers() const {
  std::vector<BufferSpec> specs;
  for (const Part& part : parts_)
    for (BufferSpec& spec : part.layer->buffers()) {
      spec.name = part.prefix + spec.name;
      specs.push_back(std::move(spec));
    }
  return specs;
}

at::Tensor Composite::Part::forward(const at::Tensor& x, std::span<const at::Tensor> all_parameters,
                                    std::span<at::Tensor> all_buffers, const Pass& pass) const {
  return layer->forward(x, all_parameters.subspan(first_parameter, parameters),
                        all_buffers.subspan(first_buffer, buffers), pass);
}

Tensors Composite::Part::forward_all(const Tensors& x, std::span<const at::Tensor> all_parameters,
                                     std::span<at::Tensor> all_buffers, const Pass& pass) const {
  return layer->forward_all(x, all_parameters.subspan(first_parameter, parameters),
                            all_buffers.subspan(first_buffer, buffers), pass);
}

void Composite::set_name(std::string name) {
  for (const Part& part : parts_) part.layer->set_name(name + part.suffix);
  Layer::set_name(std::move(name));
}

void Composite::add(LayerPtr layer, std::string prefix) {
  std::string suffix = prefix.empty() ? "" : "." + prefix.substr(0, prefix.size() - 1);
  add(std::move(layer), std::move(prefix), std::move(suffix));
}

void Composite::add(LayerPtr layer, std::string prefix, std::string suffix) {
  PIPEWRIGHT_CHECK(layer, "part ", parts_.size(), " of a composite layer is missing");
  const std::size_t parameters = layer->parameters().size(), buffers = layer->buffers().size();
  parts_.push_back({std::move(layer), std::move(prefix), std::move(suffix), parameters_, parameters,
                    buffers_, buffers});
  parameters_ += parameters;
  buffers_ += buffers;
}

void Composite::check_names() const {
  std::set<std::string> seen;
  for (const ParameterSpec& spec : parameters())
    PIPEWRIGHT_CHECK(seen.insert(spec.name).second, "two parameters are named '", spec.name, "'");
  for (const BufferSpec& spec : buffers())
    PIPEWRIGHT_CHECK(seen.insert(spec.name).second, "two buffers are named '", spec.name, "'");
}

}  // namespace pipewright
