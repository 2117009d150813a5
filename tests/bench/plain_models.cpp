#include "tests/bench/plain_models.h"

#include <torch/torch.h>

#include "core/stage/weight_store.h"

namespace pipewright::bench {
namespace {

PlainStep training_loop(torch::nn::Sequential model, std::shared_ptr<Optimizer> optimizer) {
  model->train();
  auto parameters = model->parameters();
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    shapes.emplace_back(std::to_string(i), parameters[i].sizes().vec());
  auto layout = std::make_shared<FlatLayout>(flat_layout(shapes, 4));
  at::Tensor flat = at::zeros({layout->size});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& entry = layout->entries[i];
    at::Tensor view = flat.narrow(0, entry.offset, entry.size).view(entry.shape);
    view.copy_(parameters[i].detach());
    parameters[i].set_data(view);
  }
  auto state = std::make_shared<OptimizerState>(
      fresh_state(*optimizer, *layout, flat.options(), false, false));
  return [=](const at::Tensor& x, const at::Tensor& y) mutable {
    const at::Tensor loss = at::cross_entropy_loss(model->forward(x), y);
    loss.backward();
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (auto& parameter : parameters) {
      gradients.push_back(parameter.grad());
      parameter.mutable_grad().reset();
    }
    optimizer->step({.layout = *layout,
                     .gradients = gradients,
                     .weights = flat,
                     .next = flat,
                     .state = *state,
                     .lr = 1e-3});
    static_cast<void>(loss.item<float>());  // as a training loop does, to log it
  };
}

}  // namespace

PlainStep plain_mlp(const std::vector<std::int64_t>& widths, std::shared_ptr<Optimizer> optimizer) {
  torch::nn::Sequential model;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    model->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
    if (i + 2 < widths.size()) model->push_back(torch::nn::ReLU());
  }
  return training_loop(model, std::move(optimizer));
}

PlainStep plain_vgg16_bn(std::shared_ptr<Optimizer> optimizer) {
  torch::nn::Sequential model;
  std::int64_t channels = 3;
  for (const std::int64_t next :
       {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}) {
    if (next == 0) {
      model->push_back(torch::nn::MaxPool2d(2));
      continue;
    }
    model->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, next, 3).padding(1)));
    model->push_back(torch::nn::BatchNorm2d(next));
    model->push_back(torch::nn::ReLU(torch::nn::ReLUOptions(true)));
    channels = next;
  }
  model->push_back(torch::nn::AdaptiveAvgPool2d(1));
  model->push_back(torch::nn::Flatten());
  model->push_back(torch::nn::Linear(512, 10));
  return training_loop(model, std::move(optimizer));
}

}  // namespace pipewright::bench
