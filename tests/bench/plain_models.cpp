// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/plain_models.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "core/stage/weight_store.h"

namespace pipewright::bench {
namespace {

torch::nn::Conv2d convolution(std::int64_t from, std::int64_t to, int size, int stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(from, to, size).stride(stride).padding(size / 2).bias(false));
}

torch::nn::ReLU relu_in_place() {
  return torch::nn::ReLU(torch::nn::ReLUOptions(true));
}

/// Convolutions of 1×1, 3×3 and 1×1, and a way around them.
class Bottleneck final : public torch::nn::Module {
 public:
  Bottleneck(std::int64_t from, std::int64_t within, int stride)
      : body_(register_module(
            "body",
            torch::nn::Sequential(convolution(from, within, 1, 1), torch::nn::BatchNorm2d(within),
                                  relu_in_place(), convolution(within, within, 3, stride),
                                  torch::nn::BatchNorm2d(within), relu_in_place(),
                                  convolution(within, 4 * within, 1, 1),
                                  torch::nn::BatchNorm2d(4 * within)))) {
    if (from == 4 * within && stride == 1) return;
    around_ =
        register_module("around", torch::nn::Sequential(convolution(from, 4 * within, 1, stride),
                                                        torch::nn::BatchNorm2d(4 * within)));
  }
  at::Tensor forward(const at::Tensor& x) {
    return body_->forward(x).add_(around_.is_empty() ? x : around_->forward(x)).relu_();
  }

 private:
  torch::nn::Sequential body_, around_{nullptr};
};

/// Token and position embeddings.
class Embeddings final : public torch::nn::Module {
 public:
  explicit Embeddings(const GptSize& size)
      : tokens_(register_module("tokens", torch::nn::Embedding(size.vocabulary, size.width))),
        positions_(register_module("positions", torch::nn::Embedding(size.tokens, size.width))) {}
  at::Tensor forward(const at::Tensor& ids) {
    return tokens_->forward(ids) + positions_->forward(at::arange(ids.size(1), ids.options()));
  }

 private:
  torch::nn::Embedding tokens_, positions_;
};

torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

/// Causal attention and two linear layers, each behind a norm and with a way around.
class Decoder final : public torch::nn::Module {
 public:
  explicit Decoder(const GptSize& size)
      : heads_(size.heads),
        norm_(register_module("norm", layer_norm(size.width))),
        attend_(register_module("attend", torch::nn::Linear(size.width, 3 * size.width))),
        project_(register_module("project", torch::nn::Linear(size.width, size.width))),
        feed_forward_(register_module(
            "feed_forward",
            torch::nn::Sequential(layer_norm(size.width),
                                  torch::nn::Linear(size.width, 4 * size.width),
                                  torch::nn::GELU(torch::nn::GELUOptions().approximate("tanh")),
                                  torch::nn::Linear(4 * size.width, size.width)))) {}
  at::Tensor forward(const at::Tensor& x) {
    const std::int64_t batch = x.size(0), tokens = x.size(1), width = x.size(2);
    const auto parts = attend_->forward(norm_->forward(x))
                           .view({batch, tokens, 3, heads_, width / heads_})
                           .permute({2, 0, 3, 1, 4})
                           .unbind();
    const at::Tensor attended =
        at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true);
    const at::Tensor y =
        x + project_->forward(attended.transpose(1, 2).reshape({batch, tokens, width}));
    return y + feed_forward_->forward(y);
  }

 private:
  std::int64_t heads_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear attend_, project_;
  torch::nn::Sequential feed_forward_;
};

/// Autocast of the calling thread, with its cache of narrowed weights, while it lives.
class Autocast {
 public:
  Autocast(at::DeviceType device, bool on) : device_(device), on_(on) {
    if (!on_) return;
    at::autocast::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::set_autocast_enabled(device_, true);
  }
  ~Autocast() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(device_, false);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool on_;
};

}  // namespace

torch::nn::Sequential plain_mlp(const std::vector<std::int64_t>& widths) {
  torch::nn::Sequential model;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    model->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
    if (i + 2 < widths.size()) model->push_back(torch::nn::ReLU());
  }
  return model;
}

torch::nn::Sequential plain_vgg16_bn() {
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
    model->push_back(relu_in_place());
    channels = next;
  }
  model->push_back(torch::nn::AdaptiveAvgPool2d(1));
  model->push_back(torch::nn::Flatten());
  model->push_back(torch::nn::Linear(512, 10));
  return model;
}

torch::nn::Sequential plain_resnet50() {
  torch::nn::Sequential model(
      convolution(3, 64, 7, 2), torch::nn::BatchNorm2d(64), relu_in_place(),
      torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));
  constexpr std::pair<std::int64_t, int> kGroups[] = {{64, 3}, {128, 4}, {256, 6}, {512, 3}};
  std::int64_t channels = 64;
  for (const auto& [within, blocks] : kGroups)
    for (int block = 0; block < blocks; ++block) {
      model->push_back(Bottleneck(channels, within, block == 0 && within > 64 ? 2 : 1));
      channels = 4 * within;
    }
  model->push_back(torch::nn::AdaptiveAvgPool2d(1));
  model->push_back(torch::nn::Flatten());
  model->push_back(torch::nn::Linear(channels, 10));
  return model;
}

torch::nn::Sequential plain_gpt(const GptSize& size) {
  torch::nn::Sequential model;
  model->push_back(Embeddings(size));
  for (std::int64_t layer = 0; layer < size.layers; ++layer) model->push_back(Decoder(size));
  model->push_back(layer_norm(size.width));
  model->push_back(
      torch::nn::Linear(torch::nn::LinearOptions(size.width, size.vocabulary).bias(false)));
  model->push_back(torch::nn::Flatten(torch::nn::FlattenOptions().start_dim(0).end_dim(1)));
  return model;
}

PlainStep training_loop(torch::nn::Sequential model, std::shared_ptr<const Optimizer> optimizer) {
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

PlainStep fused_loop(torch::nn::Sequential model, at::Device device, bool mixed) {
  model->train();
  model->to(device);
  const std::vector<at::Tensor> parameters = model->parameters();
  std::vector<at::Tensor> momentum;
  for (const at::Tensor& parameter : parameters) momentum.push_back(at::zeros_like(parameter));
  return
      [=, previous = at::Tensor(), first = true](const at::Tensor& x, const at::Tensor& y) mutable {
        at::Tensor loss;
        {
          const Autocast autocast(device.type(), mixed);
          loss = at::cross_entropy_loss(model->forward(x), y.reshape({-1}));
        }
        loss.backward();
        const at::NoGradGuard no_grad;
        std::vector<at::Tensor> gradients;
        for (const at::Tensor& parameter : parameters) {
          gradients.push_back(parameter.grad());
          parameter.mutable_grad().reset();
        }
        at::_fused_sgd_(parameters, gradients, momentum, 0, 0.9, 1e-3, 0, false, false, first);
        first = false;
        if (previous.defined()) static_cast<void>(previous.item<float>());
        previous = loss.detach();
      };
}

}  // namespace pipewright::bench
