// SPDX-License-Identifier: Apache-2.0
#include "core/nn/memory_format.h"

#include <algorithm>

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::size_t kImageDimensions = 4;  // of a batch of images, and of convolutions' weights

}  // namespace

std::string memory_format_name(bool channels_last) {
  return channels_last ? "channels_last" : "contiguous";
}

bool has_convolutions(const std::vector<LayerPtr>& layers) {
  return std::ranges::any_of(layers, [](const LayerPtr& layer) {
    return std::ranges::any_of(layer->parameters(), [](const ParameterSpec& parameter) {
      return parameter.shape.size() == kImageDimensions;
    });
  });
}

at::MemoryFormat memory_format(const at::Tensor& tensor, bool channels_last) {
  const bool image = channels_last && tensor.sizes().size() == kImageDimensions;
  return image ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

at::Tensor laid_out(const at::Tensor& tensor, bool channels_last) {
  return tensor.contiguous(memory_format(tensor, channels_last));
}

bool in_channels_last(const at::Tensor& tensor) {
  return tensor.suggest_memory_format() == at::MemoryFormat::ChannelsLast;
}

at::Tensor flattened(const at::Tensor& tensor) {
  return (in_channels_last(tensor) ? tensor.permute({0, 2, 3, 1}) : tensor).reshape({-1});
}

at::Tensor reshaped(const at::Tensor& flat, at::IntArrayRef sizes, bool channels_last) {
  if (!channels_last || sizes.size() != kImageDimensions) return flat.view(sizes);
  return flat.view({sizes[0], sizes[2], sizes[3], sizes[1]}).permute({0, 3, 1, 2});
}

}  // namespace pipewright
