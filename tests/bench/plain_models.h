// SPDX-License-Identifier: Apache-2.0
/// The benchmarks' opponents: models of torch::nn and ordinary training loops, as a user of
/// LibTorch writes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <memory>
#include <vector>

#include "core/optim/optimizer.h"

namespace pipewright::bench {

/// torch::nn::Sequential of Linear and ReLU.
torch::nn::Sequential plain_mlp(const std::vector<std::int64_t>& widths);
/// VGG-16 with batch-norm in CIFAR form, 10 classes.
torch::nn::Sequential plain_vgg16_bn();
/// ResNet-50 with the stem for large images, 10 classes.
torch::nn::Sequential plain_resnet50();

struct GptSize {
  std::int64_t vocabulary, tokens, width, heads, layers;
};
/// A decoder-only Transformer of GPT-2's shape without dropout: tokens [batch, tokens] to logits
/// [batch · tokens, vocabulary].
torch::nn::Sequential plain_gpt(const GptSize& size);

/// One training step on (x, y): forward, cross-entropy, backward, update.
using PlainStep = std::function<void(const at::Tensor& x, const at::Tensor& y)>;

/// On the CPU, with our fused update in place of torch::optim. Reads its loss after each step.
PlainStep training_loop(torch::nn::Sequential model, std::shared_ptr<const Optimizer> optimizer);

/// On any device, with LibTorch's fused SGD (momentum 0.9) over all parameters at once. `mixed`:
/// the forward runs under autocast to bfloat16. Reads the loss of a step once the next is queued,
/// so that a device never waits for it.
PlainStep fused_loop(torch::nn::Sequential model, at::Device device, bool mixed);

}  // namespace pipewright::bench
