// SPDX-License-Identifier: Apache-2.0
/// Codecs compress the tensors that cross an edge between two stages. A codec holds settings only.
/// A coder is one end of an edge for one tensor of the message and one direction, with the state of
/// that end. Coders receive contiguous float32, whatever the tensor was (`edge_coding.h`).
/// Gradients use the straight-through estimator: the backward ignores compression errors, unless
/// Coder::through() says otherwise.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/codecs/frame.h"
#include "core/config/options.h"
#include "core/tensors/named_tensors.h"

namespace pipewright {

/// Identifies the tensor that is encoded or decoded. It is the same on both ends.
struct CodecCall {
  std::uint64_t seed = 0;  ///< seed of the run
  bool training = true;
  bool backward = false;  ///< the tensor is a gradient
  int gradients = 1;      ///< of an activation: how many gradients of it will come back
  /// On the sending end: a gradient is multiplied by this power of two, which may differ from that
  /// of the call before (LossScale).
  double loss_scale = 0;  ///< 0: gradients have none
  int edge = 0;           ///< stage that made the activation
  int tensor = 0;         ///< index among the message's floating-point tensors
  int epoch = 0;
  int minibatch = 0;              ///< within the epoch
  std::int64_t first_sample = 0;  ///< of the micro-batch, counted within the mini-batch
  /// Training-split indices of the samples along dimension 0, if a codec asks for them
  /// (Codec::by_sample()).
  std::span<const std::int64_t> samples = {};
  std::shared_ptr<const void> samples_keeper = {};  ///< keeps the memory of `samples`
};

/// A frame under construction. A coder calls payload() once and writes its payload there. If it
/// does not, or calls leave_raw() afterwards, the tensor is sent uncompressed (raw).
class FrameBuilder {
 public:
  FrameBuilder(FrameHeader header, at::Device device)
      : header_(std::move(header)), device_(device) {}
  /// Allocates the payload: [bytes], kByte, 8-byte aligned, uninitialised, on the tensor's device.
  at::Tensor payload(std::int64_t bytes);
  /// Discards the payload, so that the tensor is sent raw. CPU only: other devices cannot send raw.
  void leave_raw();
  /// On a CPU header and payload in one tensor, elsewhere the payload; undefined for a raw tensor.
  const at::Tensor& frame() const { return frame_; }

 private:
  FrameHeader header_;
  at::Device device_;
  at::Tensor frame_;
};

/// One end of an edge for one tensor and direction; used by one thread at a time. On the sending
/// end calls come in message order. On the receiving end the order may differ, so its state must be
/// keyed by sample.
class Coder {
 public:
  virtual ~Coder() = default;
  /// Encodes x: float32, contiguous, without graph, read-only, possibly empty or 0-dimensional.
  /// Non-finite values must not disappear: on a CPU the coder leaves such a tensor raw; on another
  /// device, where the host cannot look, the payload must decode to non-finite values.
  virtual void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) = 0;
  /// Decodes a payload to a tensor with these sizes: float32, fresh, contiguous, on the payload's
  /// device. Throws Error{Data} for a payload that encode() cannot make, and never reads outside
  /// it.
  virtual at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes,
                            const CodecCall& call) = 0;
  /// The gradient of encode()'s x, given the gradient that arrived for the decoded tensor. Called
  /// on the sending end of the forward, CodecCall::gradients times for each tensor, whatever codec
  /// the gradient crossed with; the default is the straight-through estimator.
  virtual at::Tensor through(const at::Tensor& gradient, const CodecCall&) { return gradient; }

  /// The state that lives from one mini-batch to the next, for checkpoints.
  virtual NamedTensors state() const { return {}; }
  /// Restores tensors that state() returned, on any device. Throws Error{Data} if they do not fit.
  virtual void restore(const NamedTensors&) {}
};

/// The settings of a codec. Immutable; one object serves all threads and outlives its coders.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::unique_ptr<Coder> coder() const = 0;
  /// Payload bytes of a finite tensor with these sizes, if the sizes alone determine them.
  virtual std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const = 0;
  /// Whether what a coder sends in an evaluation depends on the mini-batches that it has encoded.
  virtual bool evaluates_by_state() const { return false; }
  /// Whether the coders keep state per sample and so need CodecCall::samples.
  virtual bool by_sample() const { return false; }
};

}  // namespace pipewright

#define PIPEWRIGHT_CODEC(name, Type, summary)  \
  PIPEWRIGHT_STAMP(codec, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Codec, name, Type, summary)
