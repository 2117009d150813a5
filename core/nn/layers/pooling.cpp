// SPDX-License-Identifier: Apache-2.0
/// Layers without parameters and buffers that rearrange or summarise their input.
#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

void check_window(const char* what, std::int64_t kernel, std::int64_t stride,
                  std::int64_t padding) {
  PIPEWRIGHT_CHECK(kernel > 0 && stride > 0 && padding >= 0 && 2 * padding <= kernel, what, " of ",
                   kernel, "/", stride, ", padding ", padding);
}

}  // namespace

LayerPtr max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool ceil) {
  check_window("max-pool", kernel, stride, padding);
  return layer_of([=](const at::Tensor& x) {
    return at::max_pool2d(x, {kernel, kernel}, {stride, stride}, {padding, padding},
                          /*dilation=*/1, ceil);
  });
}

LayerPtr average_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                      bool count_padding) {
  check_window("average-pool", kernel, stride, padding);
  return layer_of([=](const at::Tensor& x) {
    return at::avg_pool2d(x, {kernel, kernel}, {stride, stride}, {padding, padding},
                          /*ceil_mode=*/false, count_padding);
  });
}

LayerPtr average_pool_to(std::int64_t size) {
  PIPEWRIGHT_CHECK(size > 0, "average-pool to ", size);
  return layer_of([size](const at::Tensor& x) {
    if (!x.is_meta() || size == 1) return average_to(x, size, size);
    return made_on_meta(
        {x}, at::empty({x.size(0), x.size(1), size, size}, x.options(), x.suggest_memory_format()),
        {x}, kOperatorsOfProducts);
  });
}

LayerPtr upsample_nearest(std::int64_t factor) {
  PIPEWRIGHT_CHECK(factor > 0, "upsample by ", factor);
  return layer_of([factor](const at::Tensor& x) {
    return at::upsample_nearest2d(x, {factor * x.size(2), factor * x.size(3)});
  });
}

LayerPtr average_over_tokens() {
  return layer_of([](const at::Tensor& x) { return x.mean(1); });
}

LayerPtr flatten() {
  return layer_of([](const at::Tensor& x) { return x.flatten(1); });
}

}  // namespace pipewright
