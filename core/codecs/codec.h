/// Codecs: what a tensor becomes on its way over an edge. A codec is settings and knows no tensor;
/// a coder is one end of one tensor's way over one edge in one direction, with what that end
/// remembers. Coders see float32, contiguous, whatever the tensor was (`edge_coding.h`), and the
/// gradient of what they lose is straight through: as if nothing was.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/registry.h"
#include "core/codecs/frame.h"
#include "core/config/options.h"

namespace pipewright {

/// Which tensor it is. The same on both ends.
struct CodecCall {
  std::uint64_t seed = 0;  ///< of the run
  bool training = true;
  bool backward = false;  ///< it is a gradient
  int edge = 0;           ///< stage it leaves or, a gradient, comes back to
  int tensor = 0;         ///< its place in the message
  int epoch = 0;
  int minibatch = 0;              ///< within the epoch
  std::int64_t first_sample = 0;  ///< of the micro-batch within the whole mini-batch
  /// Indices into the training split of the samples along dimension 0, if the codec asked for them
  /// (Codec::by_sample).
  std::span<const std::int64_t> samples = {};
};

/// A frame being made: the coder asks once for room for its payload and writes there. One that does
/// not ask, or finds while writing that it should not have, leaves the tensor to travel raw.
class FrameBuilder {
 public:
  FrameBuilder(FrameHeader header, at::Device device)
      : header_(std::move(header)), device_(device) {}
  /// [bytes], kByte, 8-byte aligned, on the tensor's device; says nothing yet.
  at::Tensor payload(std::int64_t bytes);
  /// Gives the room back. Not on a device, where nothing can go raw.
  void leave_raw();
  /// Header and payload in one; undefined where no payload was asked for.
  const at::Tensor& frame() const { return frame_; }

 private:
  FrameHeader header_;
  at::Device device_;
  at::Tensor frame_;
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Used by one thread at a time. Calls come in the order of the messages on the sending end; a
/// receiving end may be asked in another, so what it remembers must go by sample.
class Coder {
 public:
  virtual ~Coder() = default;
  /// x: float32, contiguous, without graph, not to be written to; may be empty or 0-dimensional.
  /// What is not finite must not get lost: on a CPU leave such a tensor raw; on another device,
  /// where the host does not know, decode to values that are not finite either.
  virtual void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) = 0;
  /// The tensor of these sizes that a payload stands for: float32, fresh, contiguous, on the
  /// payload's device. Throws Error{Data} for a payload that no encode() makes: nothing outside it
  /// is read.
  virtual at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes,
                            const CodecCall& call) = 0;
  /// The gradient of x, from the one that came for what was decoded; on the forward's sending end,
  /// where it remembers something of that forward.
  virtual at::Tensor through(const at::Tensor& gradient, const CodecCall&) { return gradient; }

  /// What it remembers from one mini-batch to the next, for checkpoints.
  virtual NamedTensors state() const { return {}; }
  /// Tensors as state() gave them, on any device. Throws Error{Data} where they do not fit.
  virtual void restore(const NamedTensors&) {}
};

/// Settings. Immutable; one object serves all threads and outlives its coders.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::unique_ptr<Coder> coder() const = 0;
  /// Payload of a finite tensor of these sizes, if that says it.
  virtual std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const = 0;
  /// Its coders remember by sample.
  virtual bool by_sample() const { return false; }
};

}  // namespace pipewright

#define PIPEWRIGHT_CODEC(name, Type, summary) \
  PIPEWRIGHT_REGISTER(::pipewright::Codec, name, Type, summary)
