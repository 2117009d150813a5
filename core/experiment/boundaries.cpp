#include "core/experiment/boundaries.h"

#include <algorithm>

#include "core/experiment/made_up_batch.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

std::vector<at::Tensor> without_memory(const auto& specs, const at::TensorOptions& meta) {
  std::vector<at::Tensor> tensors;
  for (const auto& spec : specs) tensors.push_back(at::empty(spec.shape, meta));
  return tensors;
}

/// The largest inputs that the plan's loaders give. Images of the evaluation have a size of their
/// own: they come as the data set has them.
Tensors largest_inputs(const Plan& plan) {
  const Experiment& e = *plan.experiment;
  const auto meta = at::TensorOptions(e.train.float64 ? at::kDouble : at::kFloat).device(at::kMeta);
  Tensors inputs = made_up_batch(*e.model, e.loader.batch_size, meta).x;
  // Texts' own longest: a target may be as long as the longest source.
  if (e.model->vocabulary() > 0) return Tensors(inputs.size(), inputs[0]);
  if (e.model->flattens() || plan.test.empty()) return inputs;
  const Batch one = e.dataset->batch(plan.test_split, std::span(plan.test).first(1), nullptr);
  std::vector<std::int64_t> sizes = inputs[0].sizes().vec();
  if (one.x.empty() || one.x[0].dim() != inputs[0].dim()) return inputs;
  for (std::size_t i = 1; i < sizes.size(); ++i)
    sizes[i] = std::max(sizes[i], one.x[0].size(static_cast<std::int64_t>(i)));
  return {at::empty(sizes, meta)};
}

std::int64_t most_values(const Tensors& tensors) {
  std::int64_t most = 0;
  for (const at::Tensor& tensor : tensors) most = std::max(most, tensor.numel());
  return most;
}

}  // namespace

std::vector<Tensors> boundaries(const Experiment& experiment, Tensors inputs) {
  const at::NoGradGuard no_grad;
  const auto meta =
      at::TensorOptions(experiment.train.float64 ? at::kDouble : at::kFloat).device(at::kMeta);
  std::vector<Tensors> all;
  std::size_t layer = 0;
  for (std::size_t stage = 0; stage + 1 < experiment.balance.size(); ++stage) {
    for (std::int64_t i = 0; i < experiment.balance[stage]; ++i, ++layer) {
      const Layer& next = *experiment.layers[layer];
      const auto parameters = without_memory(next.parameters(), meta);
      auto buffers = without_memory(next.buffers(), meta);
      inputs = next.forward_all(inputs, parameters, buffers, {});
    }
    all.push_back(inputs);
  }
  return all;
}

EdgeValues most_values(const Plan& plan) {
  EdgeValues all;
  try {
    for (const Tensors& tensors : boundaries(*plan.experiment, largest_inputs(plan)))
      all.push_back(most_values(tensors));
  } catch (const c10::Error&) {  // a layer that looks at values
    return {};
  }
  return all;
}

}  // namespace pipewright
