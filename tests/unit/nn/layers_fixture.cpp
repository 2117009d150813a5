// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/nn/layers_fixture.h"

#include <ATen/core/grad_mode.h>

#include <limits>

#include "core/base/random.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

std::int64_t numel(at::IntArrayRef shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

/// The values one after another, each starting on a 64-byte boundary, as a stage lays them out.
at::Tensor flattened(const std::vector<at::Tensor>& values, std::vector<std::int64_t>& starts) {
  const at::ScalarType type = values.empty() ? at::kDouble : values[0].scalar_type();
  const auto alignment = static_cast<std::int64_t>(64 / c10::elementSize(type));
  std::int64_t size = 0;
  starts.clear();
  for (const at::Tensor& value : values) {
    starts.push_back(size);
    size += (value.numel() + alignment - 1) / alignment * alignment;
  }
  at::Tensor flat = at::zeros({size}, type);
  for (std::size_t i = 0; i < values.size(); ++i)
    flat.narrow(0, starts[i], values[i].numel()).copy_(values[i].flatten());
  return flat;
}

}  // namespace

at::Tensor random(at::IntArrayRef shape, std::uint64_t seed) {
  const RandomStream stream(seed, "test");
  at::Tensor out = at::empty({numel(shape)}, at::kDouble);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.data_ptr<double>()[i] = stream.normal(static_cast<std::uint64_t>(i));
  return out.view(shape);
}

std::vector<at::Tensor> random_parameters(const Layer& layer, std::uint64_t seed) {
  std::vector<at::Tensor> values;
  for (const ParameterSpec& spec : layer.parameters())
    values.push_back(random(spec.shape, seed * 1000 + values.size()));
  return values;
}

std::vector<at::Tensor> fresh_buffers(const Layer& layer, at::ScalarType type) {
  std::vector<at::Tensor> values;
  for (const BufferSpec& spec : layer.buffers())
    values.push_back(at::full(spec.shape, spec.fill, type));
  return values;
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  const double scale = b.abs().max().item<double>();
  return (a - b).abs().max().item<double>() / (scale > 0 ? scale : 1);
}

at::Tensor apply(const Layer& layer, const at::Tensor& x, const std::vector<at::Tensor>& parameters,
                 const Pass& pass) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> buffers = fresh_buffers(layer, x.scalar_type());
  return layer.forward(x, parameters, buffers, pass);
}

at::Tensor grad_output(const at::Tensor& output, std::uint64_t seed) {
  return random(output.sizes(), seed);
}

Gradients gradients(const Layer& layer, const at::Tensor& x, const std::vector<at::Tensor>& forward,
                    const std::vector<at::Tensor>& backward, std::uint64_t grad_output_seed,
                    Swap swap, const Pass& pass) {
  std::vector<std::int64_t> starts;
  const at::Tensor flat = flattened(forward, starts), other = flattened(backward, starts);
  std::vector<at::Tensor> leaves;
  for (std::size_t i = 0; i < forward.size(); ++i)
    leaves.push_back(flat.narrow(0, starts[i], forward[i].numel())
                         .view(forward[i].sizes())
                         .detach()
                         .set_requires_grad(true));
  std::vector<at::Tensor> buffers = fresh_buffers(layer, x.scalar_type());
  const at::Tensor input = x.detach().clone().set_requires_grad(true);
  const at::Tensor output = layer.forward(input, leaves, buffers, pass);
  const at::Tensor kept_output = output.detach().clone();

  if (swap == Swap::Storage)
    flat.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(
        other.data_ptr(), nullptr, [](void*) {}, other.device()));
  else
    for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].set_data(backward[i].clone());

  std::vector<at::Tensor> inputs{input};
  inputs.insert(inputs.end(), leaves.begin(), leaves.end());
  const auto grads = torch::autograd::grad(
      {output}, inputs, {grad_output(kept_output, grad_output_seed).to(x.scalar_type())});
  return {kept_output, grads[0], {grads.begin() + 1, grads.end()}};
}

}  // namespace pipewright::test
