// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/gradient_exchange.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {

GradientExchange::GradientExchange(const NamedShapes& parameters, int replicas,
                                   GradientCompression compression, std::uint64_t seed)
    : replicas_(replicas) {
  for (const auto& [name, shape] : parameters)
    weights_.push_back({.name = name, .factors = {shape, compression.rank, seed, name}});
}

void GradientExchange::advance(int round, std::vector<at::Tensor>& tensors) {
  PIPEWRIGHT_CHECK(tensors.size() == weights_.size());
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i) switch (round) {
      case 0: to_left(weights_[i], tensors[i]); break;
      case 1: to_right(weights_[i], tensors[i]); break;
      default: to_gradient(weights_[i], tensors[i]);
    }
}

/// sum / R in fresh memory. Its alignment does not depend on where `sum` was, so neither do the
/// bits of what is computed from it.
at::Tensor GradientExchange::mean(const at::Tensor& sum) const {
  return at::div(sum, replicas_).to(at::kFloat);
}

void GradientExchange::to_left(Weight& weight, at::Tensor& tensor) const {
  weight.begun = tensor.defined();
  if (!weight.begun || !weight.factors.compresses()) return;
  tensor = weight.factors.left(at::mul(tensor, replicas_)).to(tensor.scalar_type());
}

void GradientExchange::to_right(Weight& weight, at::Tensor& tensor) const {
  if (!tensor.defined()) return;
  if (!weight.factors.compresses()) {
    weight.sum = std::exchange(tensor, at::Tensor());
    return;
  }
  if (!weight.begun) weight.factors.left(at::zeros(weight.factors.sizes(), tensor.options()));
  tensor = weight.factors.right(mean(tensor)).to(tensor.scalar_type());
}

void GradientExchange::to_gradient(Weight& weight, at::Tensor& tensor) const {
  if (!weight.factors.compresses())
    tensor = std::exchange(weight.sum, at::Tensor());
  else if (tensor.defined())
    tensor = weight.factors.approximation(mean(tensor)).to(tensor.scalar_type());
}

NamedTensors GradientExchange::state() const {
  NamedTensors all;
  for (const Weight& weight : weights_)
    for (auto& [name, tensor] : weight.factors.state())
      all.emplace_back(concat(weight.name, ".", name), tensor);
  return all;
}

void GradientExchange::restore(const NamedTensors& state) {
  std::map<std::string, NamedTensors> parts;
  for (const auto& [name, tensor] : state) {
    const std::size_t end = std::min(name.rfind('.'), name.size());
    parts[name.substr(0, end)].emplace_back(name.substr(std::min(end + 1, name.size())), tensor);
  }
  for (const auto& [name, tensors] : parts) {
    const auto weight = std::ranges::find(weights_, name, &Weight::name);
    if (weight == weights_.end())
      throw Error(ErrorKind::Data, concat("holds PowerSGD's state of '", name,
                                          "', which is no parameter of the stage"));
    weight->factors.restore(tensors);
  }
}

ExchangedBytes exchanged_bytes(const NamedShapes& parameters, GradientCompression compression,
                               std::int64_t bytes_per_value) {
  ExchangedBytes bytes;
  for (const auto& [name, shape] : parameters) {
    const std::int64_t whole = bytes_per_value * c10::multiply_integers(shape);
    const FactorSizes factors = factor_sizes(shape, compression.rank);
    if (factors.rank == 0) {
      bytes.sums[0] += whole;
      continue;
    }
    bytes.compressed += whole;
    bytes.sums[0] += bytes_per_value * factors.rows * factors.rank;
    bytes.sums[1] += bytes_per_value * factors.columns * factors.rank;
  }
  return bytes;
}

std::size_t bytes_of(std::span<const at::Tensor> tensors) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) bytes += tensor.nbytes();
  return bytes;
}

}  // namespace pipewright
