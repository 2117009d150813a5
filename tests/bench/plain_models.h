// SPDX-License-Identifier: Apache-2.0
/// The benchmark's opponents: ordinary LibTorch training loops, as a user of torch::nn writes them,
/// with our fused update in place of torch::optim.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "core/stage/optimizer.h"

namespace pipewright::bench {

/// One training step on (x, y): forward, cross-entropy, backward, update.
using PlainStep = std::function<void(const at::Tensor& x, const at::Tensor& y)>;

/// torch::nn::Sequential of Linear and ReLU.
PlainStep plain_mlp(const std::vector<std::int64_t>& widths, std::shared_ptr<Optimizer> optimizer);
/// VGG-16 with batch-norm in CIFAR form, 10 classes.
PlainStep plain_vgg16_bn(std::shared_ptr<Optimizer> optimizer, at::Device device = at::kCPU);
/// ResNet-18 in CIFAR form, 10 classes.
PlainStep plain_resnet18(std::shared_ptr<Optimizer> optimizer, at::Device device = at::kCPU);

}  // namespace pipewright::bench
