// SPDX-License-Identifier: Apache-2.0
#include "core/probes/whole_model.h"

#include <map>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// While it lives, attention is computed by operators that have second derivatives.
class PlainAttention {
 public:
  PlainAttention() : flash_(at::globalContext().userEnabledFlashSDP()) {
    at::globalContext().setSDPUseFlash(false);
  }
  ~PlainAttention() { at::globalContext().setSDPUseFlash(flash_); }
  PlainAttention(const PlainAttention&) = delete;
  PlainAttention& operator=(const PlainAttention&) = delete;

 private:
  bool flash_;
};

using Named = std::map<std::string, at::Tensor, std::less<>>;

const at::Tensor& found(const Named& named, const std::string& name) {
  const auto at = named.find(name);
  PIPEWRIGHT_CHECK(at != named.end(), "a copy of a model has no '", name, "'");
  return at->second;
}

/// The divisors of all parameters, or none: an optimizer has none before its first update, which
/// float16 may skip in one stage only.
Named divisors_of(const ModelInstant& model) {
  Named divisors(model.preconditioner.begin(), model.preconditioner.end());
  for (const LayerPtr& layer : model.layers)
    for (const ParameterSpec& spec : layer->parameters())
      if (!divisors.contains(parameter_name(*layer, spec.name))) return {};
  return divisors;
}

}  // namespace

WholeModel::WholeModel(const ModelInstant& model) {
  const Named state(model.state.begin(), model.state.end());
  const Named divisors = divisors_of(model);
  const at::AutoGradMode record(true);
  const PlainAttention plain;
  Tensors values = model.inputs;
  const Pass pass{.training = true,
                  .seed = model.seed,
                  .format = state.empty() ? at::kFloat : state.begin()->second.scalar_type(),
                  .recomputing = true};
  std::size_t layer = 0;
  for (const std::int64_t count : model.layers_per_stage) {
    for (std::int64_t i = 0; i < count; ++i, ++layer) {
      const Layer& each = *model.layers[layer];
      const std::size_t first = parameters_.size();
      for (const ParameterSpec& spec : each.parameters()) {
        const std::string name = parameter_name(each, spec.name);
        parameters_.push_back(found(state, name)
                                  .detach()
                                  .clone(at::MemoryFormat::Contiguous)
                                  .set_requires_grad(true));
        if (!divisors.empty()) preconditioner_.push_back(found(divisors, name));
      }
      std::vector<at::Tensor> buffers;
      for (const BufferSpec& spec : each.buffers())
        buffers.push_back(found(state, parameter_name(each, spec.name)).clone());
      values = each.forward_all(values, std::span(parameters_).subspan(first), buffers, pass);
    }
    stage_ends_.push_back(parameters_.size());
  }
  const at::Tensor loss = model.loss(values[0], model.targets);
  gradients_ = torch::autograd::grad({loss}, parameters_, {}, true, /*create_graph=*/true, true);
}

WholeModel::Range WholeModel::range(int stage) const {
  if (stage < 0) return {0, parameters_.size()};
  return {stage == 0 ? 0 : stage_ends_[as_size(stage) - 1], stage_ends_[as_size(stage)]};
}

std::int64_t WholeModel::size(int stage) const {
  std::int64_t size = 0;
  for (auto [i, end] = range(stage); i < end; ++i) size += parameters_[i].numel();
  return size;
}

at::TensorOptions WholeModel::options() const {
  return parameters_.empty() ? at::TensorOptions() : parameters_.front().options();
}

at::Tensor WholeModel::product(int stage, const at::Tensor& vector) const {
  const at::AutoGradMode record(true);
  std::vector<at::Tensor> of, gradients, parts;
  std::int64_t offset = 0;
  for (auto [i, end] = range(stage); i < end; ++i) {
    const at::Tensor& parameter = parameters_[i];
    of.push_back(parameter);
    const at::Tensor part = vector.narrow(0, offset, parameter.numel()).view_as(parameter);
    offset += parameter.numel();
    if (!gradients_[i].defined() || !gradients_[i].requires_grad()) continue;
    gradients.push_back(gradients_[i]);
    parts.push_back(part);
  }
  std::vector<at::Tensor> products(of.size());
  if (!gradients.empty()) products = torch::autograd::grad(gradients, of, parts, true, false, true);
  for (std::size_t i = 0; i < of.size(); ++i)
    products[i] = products[i].defined() ? products[i].flatten() : at::zeros_like(of[i]).flatten();
  return at::cat(products).detach();
}

at::Tensor WholeModel::preconditioner(int stage) const {
  if (preconditioner_.empty()) return {};
  std::vector<at::Tensor> parts;
  for (auto [i, end] = range(stage); i < end; ++i) parts.push_back(preconditioner_[i].flatten());
  return at::cat(parts);
}

}  // namespace pipewright
