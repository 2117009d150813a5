// SPDX-License-Identifier: Apache-2.0
/// Layers without parameters and buffers that rearrange or summarise their input.
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class MaxPool final : public Layer {
 public:
  MaxPool(std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool ceil)
      : kernel_(kernel), stride_(stride), padding_(padding), ceil_(ceil) {
    PIPEWRIGHT_CHECK(kernel > 0 && stride > 0 && padding >= 0 && 2 * padding <= kernel,
                     "max-pool of ", kernel, "/", stride, ", padding ", padding);
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return at::max_pool2d(input, {kernel_, kernel_}, {stride_, stride_}, {padding_, padding_},
                          /*dilation=*/1, ceil_);
  }

 private:
  std::int64_t kernel_, stride_, padding_;
  bool ceil_;
};

class AveragePool final : public Layer {
 public:
  AveragePool(std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool count_padding)
      : kernel_(kernel), stride_(stride), padding_(padding), count_padding_(count_padding) {
    PIPEWRIGHT_CHECK(kernel > 0 && stride > 0 && padding >= 0 && 2 * padding <= kernel,
                     "average-pool of ", kernel, "/", stride, ", padding ", padding);
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return at::avg_pool2d(input, {kernel_, kernel_}, {stride_, stride_}, {padding_, padding_},
                          /*ceil_mode=*/false, count_padding_);
  }

 private:
  std::int64_t kernel_, stride_, padding_;
  bool count_padding_;
};

class AveragePoolTo final : public Layer {
 public:
  explicit AveragePoolTo(std::int64_t size) : size_(size) {
    PIPEWRIGHT_CHECK(size > 0, "average-pool to ", size);
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    if (input.is_meta() && size_ != 1)
      return made_on_meta({input},
                          at::empty({input.size(0), input.size(1), size_, size_}, input.options(),
                                    input.suggest_memory_format()),
                          {input});
    return average_to(input, size_, size_);
  }

 private:
  std::int64_t size_;
};

class UpsampleNearest final : public Layer {
 public:
  explicit UpsampleNearest(std::int64_t factor) : factor_(factor) {
    PIPEWRIGHT_CHECK(factor > 0, "upsample by ", factor);
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return at::upsample_nearest2d(input, {factor_ * input.size(2), factor_ * input.size(3)});
  }

 private:
  std::int64_t factor_;
};

class AverageOverTokens final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return input.mean(1);
  }
};

class Flatten final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return input.flatten(1);
  }
};

}  // namespace

LayerPtr max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool ceil) {
  return std::make_shared<MaxPool>(kernel, stride, padding, ceil);
}

LayerPtr average_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                      bool count_padding) {
  return std::make_shared<AveragePool>(kernel, stride, padding, count_padding);
}

LayerPtr average_pool_to(std::int64_t size) {
  return std::make_shared<AveragePoolTo>(size);
}

LayerPtr upsample_nearest(std::int64_t factor) {
  return std::make_shared<UpsampleNearest>(factor);
}

LayerPtr average_over_tokens() {
  return std::make_shared<AverageOverTokens>();
}

LayerPtr flatten() {
  return std::make_shared<Flatten>();
}

}  // namespace pipewright
