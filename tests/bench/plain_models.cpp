// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/plain_models.h"

#include <torch/torch.h>

#include "core/stage/weight_store.h"

namespace pipewright::bench {
namespace {

PlainStep training_loop(torch::nn::Sequential model, std::shared_ptr<Optimizer> optimizer,
                        at::Device device = at::kCPU) {
  model->train();
  model->to(device);
  auto parameters = model->parameters();
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    shapes.emplace_back(std::to_string(i), parameters[i].sizes().vec());
  auto layout = std::make_shared<FlatLayout>(flat_layout(shapes, 4));
  at::Tensor flat = at::zeros({layout->size}, device);
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

torch::nn::Conv2d convolution(std::int64_t from, std::int64_t to, int size, int stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(from, to, size).stride(stride).padding(size / 2).bias(false));
}

/// Two convolutions and a way around them.
class BasicBlock final : public torch::nn::Module {
 public:
  BasicBlock(std::int64_t from, std::int64_t to, int stride)
      : body_(register_module(
            "body", torch::nn::Sequential(convolution(from, to, 3, stride),
                                          torch::nn::BatchNorm2d(to), torch::nn::ReLU(),
                                          convolution(to, to, 3, 1), torch::nn::BatchNorm2d(to)))) {
    if (from == to && stride == 1) return;
    around_ = register_module("around", torch::nn::Sequential(convolution(from, to, 1, stride),
                                                              torch::nn::BatchNorm2d(to)));
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::relu(body_->forward(x) + (around_.is_empty() ? x : around_->forward(x)));
  }

 private:
  torch::nn::Sequential body_, around_{nullptr};
};

}  // namespace

PlainStep plain_mlp(const std::vector<std::int64_t>& widths, std::shared_ptr<Optimizer> optimizer) {
  torch::nn::Sequential model;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    model->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
    if (i + 2 < widths.size()) model->push_back(torch::nn::ReLU());
  }
  return training_loop(model, std::move(optimizer));
}

PlainStep plain_vgg16_bn(std::shared_ptr<Optimizer> optimizer, at::Device device) {
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
  return training_loop(model, std::move(optimizer), device);
}

PlainStep plain_resnet18(std::shared_ptr<Optimizer> optimizer, at::Device device) {
  torch::nn::Sequential model(convolution(3, 64, 3, 1), torch::nn::BatchNorm2d(64),
                              torch::nn::ReLU());
  std::int64_t channels = 64;
  for (const std::int64_t next : {64, 64, 128, 128, 256, 256, 512, 512}) {
    model->push_back(BasicBlock(channels, next, next == channels ? 1 : 2));
    channels = next;
  }
  model->push_back(torch::nn::AdaptiveAvgPool2d(1));
  model->push_back(torch::nn::Flatten());
  model->push_back(torch::nn::Linear(512, 10));
  return training_loop(model, std::move(optimizer), device);
}

}  // namespace pipewright::bench
