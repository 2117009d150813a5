// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/made_up_batch.h"

#include "core/measuring/boundaries.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using Shape = std::vector<std::int64_t>;

at::TensorOptions whole(const at::TensorOptions& options) {
  return options.dtype(at::kLong);
}

/// Tokens that go through the vocabulary without its control tokens (if it has others).
at::Tensor tokens(const Shape& shape, std::int64_t vocabulary, const at::TensorOptions& options) {
  const std::int64_t first = vocabulary > kEndToken + 1 ? kEndToken + 1 : 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return at::arange(count, whole(options)).remainder(vocabulary - first).add(first).view(shape);
}

/// Different numbers between −1 and 1.
at::Tensor numbers(const Shape& shape, const at::TensorOptions& options) {
  const at::Tensor x = at::empty(shape, options);
  return x.is_meta() ? x : at::arange(x.numel(), options).sin_().view(shape);
}

/// Values for an input; one without vocabulary and fractions, such as a mask, has ones.
at::Tensor made_up(const NamedInput& input, std::int64_t samples,
                   const at::TensorOptions& options) {
  Shape shape = input.shape;
  shape.insert(shape.begin(), samples);
  if (input.vocabulary > 0) return tokens(shape, input.vocabulary, options);
  if (at::isFloatingType(input.type)) return numbers(shape, options);
  return at::ones(shape, options.dtype(input.type));
}

}  // namespace

std::vector<at::Tensor> empty_parameters(const Layer& layer, const Precision& precision,
                                         at::Device device) {
  std::vector<at::Tensor> tensors;
  for (const ParameterSpec& spec : layer.parameters())
    tensors.push_back(at::empty(
        spec.shape,
        at::TensorOptions(spec.exact ? precision.weights : precision.values).device(device)));
  return tensors;
}

std::vector<at::Tensor> empty_buffers(const Layer& layer, const Precision& precision,
                                      at::Device device) {
  std::vector<at::Tensor> tensors;
  for (const BufferSpec& spec : layer.buffers())
    tensors.push_back(at::empty(spec.shape, at::TensorOptions(precision.weights).device(device)));
  return tensors;
}

Batch made_up_batch(const Model& model, std::int64_t samples, const at::TensorOptions& options,
                    bool real_targets) {
  Shape shape = model.input_shape();
  shape.insert(shape.begin(), samples);
  Batch batch;
  if (model.vocabulary() == 0) {
    batch.x = {numbers(shape, options)};
  } else {
    batch.x = {tokens(shape, model.vocabulary(), options)};
    if (model.task() == Task::Translate)
      batch.x.push_back(tokens({samples, shape[1] - 1}, model.vocabulary(), options));
  }
  const std::vector<NamedInput> inputs = model.named_inputs();
  for (std::size_t i = 1; i < inputs.size(); ++i)
    batch.x.push_back(made_up(inputs[i], samples, options));
  if (real_targets) {
    batch.y = at::zeros({samples, model.classes()}, options);
    return batch;
  }
  Shape targets{samples};
  if (model.vocabulary() > 0 && model.task() != Task::Classify)
    targets.push_back((inputs.empty() ? batch.x.back() : batch.x.front()).size(1));
  batch.y = at::zeros(targets, whole(options));
  return batch;
}

Batch made_up_batch(const Experiment& experiment, std::int64_t samples,
                    const at::TensorOptions& options) {
  const Task task = experiment.loss->compares_with();
  Batch batch = made_up_batch(*experiment.model, samples, options, task == Task::Regress);
  if (task != Task::Label) return batch;
  const Tensors inputs = made_up_batch(*experiment.model, samples, options.device(at::kMeta)).x;
  const at::Tensor output = outputs_on_meta(experiment, inputs)[0];
  if (output.dim() == 2) batch.y = at::zeros(output.sizes(), options);  // of a map, one a sample
  return batch;
}

}  // namespace pipewright
