/// Tensors to bytes and back, with any codec: types, memory layout and the header, so that a coder
/// need not think of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/codecs/codec.h"

namespace pipewright {

/// What goes over the edge instead of a tensor. From a CPU it is one frame. Another device's host
/// cannot look into bytes without waiting, so from there it is the payload alone, and beside it a
/// tensor without memory, [0, sizes…], that says what a header would.
struct Encoded {
  at::Tensor bytes;  ///< [n] kByte, on the tensor's device
  at::Tensor like;   ///< undefined where `bytes` is a frame
};

/// x: floating point, any strides, any device.
Encoded encode(Coder& coder, const std::string& codec, const at::Tensor& x, const CodecCall& call);

/// The tensor as it was but for what the codec loses: its sizes and type, contiguous, fresh memory,
/// on the device the bytes are on. Throws Error{Data} where they are damaged, another codec's or
/// stand for more than `most` values; before there is memory for these.
at::Tensor decode(Coder& coder, const std::string& codec, const Encoded& encoded,
                  const CodecCall& call, std::int64_t most = kAnyValues);

}  // namespace pipewright
