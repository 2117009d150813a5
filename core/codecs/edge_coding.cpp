// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/edge_coding.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::array<at::ScalarType, 4> kTypes{at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};

FrameType frame_type(at::ScalarType type) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i] == type) return static_cast<FrameType>(i);
  PIPEWRIGHT_CHECK(false, "a codec was given numbers of type ", at::toString(type));
}

at::ScalarType scalar_type(FrameType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

FrameHeader header_of(const std::string& codec, const at::Tensor& x) {
  return {.codec = codec_tag(codec), .type = frame_type(x.scalar_type()), .sizes = x.sizes().vec()};
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

/// A frame that holds the values uncompressed.
at::Tensor raw_frame(FrameHeader header, const at::Tensor& x) {
  header.raw = true;
  FrameBuilder frame(std::move(header), x.device());
  frame.payload(static_cast<std::int64_t>(x.nbytes()))
      .copy_(x.contiguous().reshape({-1}).view(at::kByte));
  return frame.frame();
}

at::Tensor raw_values(const at::Tensor& payload, const FrameHeader& header) {
  return payload.clone().view(scalar_type(header.type)).view(header.sizes);
}

FrameHeader header_of(const Encoded& encoded) {
  if (!encoded.like.defined()) return read_header(bytes_of(encoded.bytes));
  const at::Tensor& like = encoded.like;
  if (like.dim() < 1 || like.size(0) != 0 || std::ranges::count(kTypes, like.scalar_type()) == 0)
    throw Error(ErrorKind::Data, "a compressed message is damaged: it has no header");
  FrameHeader header{.codec = 0,
                     .type = frame_type(like.scalar_type()),
                     .sizes = like.sizes().slice(1).vec(),
                     .payload = encoded.bytes.numel()};
  check_sizes(header);
  return header;
}

}  // namespace

at::Tensor FrameBuilder::payload(std::int64_t bytes) {
  PIPEWRIGHT_CHECK(!frame_.defined(), "a coder asked twice for room");
  const bool framed = device_.is_cpu();
  const std::int64_t before = framed ? header_.bytes() : 0;
  frame_ = at::empty({before + bytes}, at::TensorOptions(at::kByte).device(device_));
  header_.payload = bytes;
  if (framed) write_header(header_, bytes_of(frame_));
  return frame_.narrow(0, before, bytes);
}

void FrameBuilder::leave_raw() {
  PIPEWRIGHT_CHECK(device_.is_cpu(), "from a device nothing can go raw");
  frame_ = at::Tensor();
}

Encoded encode(Coder& coder, const std::string& codec, const at::Tensor& x, const CodecCall& call) {
  const at::NoGradGuard no_grad;
  FrameHeader header = header_of(codec, x);
  FrameBuilder frame(header, x.device());
  coder.encode(x.to(at::kFloat).contiguous(), call, frame);
  if (!x.is_cpu()) {
    std::vector<std::int64_t> sizes{0};
    sizes.insert(sizes.end(), x.sizes().begin(), x.sizes().end());
    return {frame.frame(), at::empty(sizes, x.options())};
  }
  return {frame.frame().defined() ? frame.frame() : raw_frame(std::move(header), x), {}};
}

at::Tensor decode(Coder& coder, const std::string& codec, const Encoded& encoded,
                  const CodecCall& call, std::int64_t most) {
  const at::NoGradGuard no_grad;
  if (!encoded.like.defined() && !encoded.bytes.is_cpu())  // a frame made on a CPU
    return decode(coder, codec, {encoded.bytes.cpu(), {}}, call, most).to(encoded.bytes.device());
  const FrameHeader header = header_of(encoded);
  check_values(header, most);
  const std::int64_t before = encoded.bytes.numel() - header.payload;
  const at::Tensor payload = encoded.bytes.narrow(0, before, header.payload);
  if (header.codec != codec_tag(codec) && !encoded.like.defined())
    throw Error(ErrorKind::Data, concat("a compressed message is not one of codec ", codec));
  if (header.raw) return raw_values(payload, header);
  return coder.decode(payload, header.sizes, call).to(scalar_type(header.type));
}

}  // namespace pipewright
