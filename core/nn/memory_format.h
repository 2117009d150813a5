// SPDX-License-Identifier: Apache-2.0
/// The order of images in memory: `pipeline.memory_format`. A contiguous image [channels, height,
/// width] has its channels one after another; in channels-last memory each pixel has its channels
/// together. The weights of convolutions follow, so that no step reorders them. Everything else is
/// contiguous in both formats, and shapes are the same: only strides differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/nn/layer.h"

namespace pipewright {

/// The name of a format in experiment files and profiles.
std::string memory_format_name(bool channels_last);

/// Whether any of the layers has a convolution. Others gain nothing from channels-last memory.
bool has_convolutions(const std::vector<LayerPtr>& layers);

/// Channels-last if that is wanted and the tensor has four dimensions; otherwise contiguous.
at::MemoryFormat memory_format(const at::Tensor& tensor, bool channels_last);
/// The tensor in that format; itself if it has it already.
at::Tensor laid_out(const at::Tensor& tensor, bool channels_last);

/// Whether the strides are those of channels-last memory. An image of one pixel or one channel has
/// the same order in both formats, but operations choose by strides, so messages must keep them.
bool in_channels_last(const at::Tensor& tensor);

/// The numbers of a tensor in the order in which memory has them: of one that is laid out, a view.
/// reshaped() is the inverse, a view of a tensor of one dimension.
at::Tensor flattened(const at::Tensor& tensor);
at::Tensor reshaped(const at::Tensor& flat, at::IntArrayRef sizes, bool channels_last);

}  // namespace pipewright
