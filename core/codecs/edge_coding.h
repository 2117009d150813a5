// SPDX-License-Identifier: Apache-2.0
/// Converts tensors to bytes and back with any codec. It handles types, memory layout and the
/// header, so that coders need not.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/codecs/codec.h"

namespace pipewright {

/// The message that crosses an edge in place of a tensor. From a CPU it is one frame. On another
/// device the host cannot read bytes without waiting, so there it is the payload alone, accompanied
/// by an empty tensor [0, sizes…] whose shape and type replace the header.
struct Encoded {
  at::Tensor bytes;  ///< [n] kByte, on the tensor's device
  at::Tensor like;   ///< the empty tensor; undefined if `bytes` is a frame
};

/// Encodes x: any floating-point type, any strides, any device.
Encoded encode(Coder& coder, const std::string& codec, const at::Tensor& x, const CodecCall& call);

/// Decodes to the original sizes and type: fresh, contiguous memory on the device of the bytes.
/// Throws Error{Data}, before it allocates the result, if the bytes are damaged, belong to another
/// codec or stand for more than `most` values.
at::Tensor decode(Coder& coder, const std::string& codec, const Encoded& encoded,
                  const CodecCall& call, std::int64_t most = kAnyValues);

}  // namespace pipewright
