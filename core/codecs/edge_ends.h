// SPDX-License-Identifier: Apache-2.0
/// The ends of the edges at one stage replica: they encode and decode whole messages.
///
/// The floating-point tensors of a message are encoded; integers and booleans (token ids, masks)
/// cross unchanged. Edge k lies behind stage k. A skip message past the neighbour uses the codec of
/// edge k, k being the stage that produced the activation, in both directions.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/codecs/codec.h"
#include "core/nn/layer.h"

namespace pipewright {

/// A codec and its registered name; null: tensors cross uncompressed.
struct NamedCodec {
  std::string name = "none";
  std::shared_ptr<const Codec> codec;
};

/// The codecs of one edge. Either direction may be left uncompressed.
struct EdgeCodecs {
  NamedCodec forward, backward;
  bool in_evaluation = true;  ///< false: compressed in training only
};

/// Codecs of all edges, indexed by the stage before the edge. Empty: nothing is compressed.
using Compression = std::vector<EdgeCodecs>;
/// Greatest number of values of a tensor at each edge. Empty: unknown.
using EdgeValues = std::vector<std::int64_t>;

class EdgeEnds {
 public:
  /// `compression` must outlive the object.
  EdgeEnds(const Compression& compression, int stage, EdgeValues most = {})
      : compression_(&compression), stage_(stage), most_(std::move(most)) {}

  /// Whether messages to or from stage `peer` are compressed.
  bool compresses(int peer, const CodecCall& call) const;
  /// Replaces a message to `peer` by what crosses the edge. The caller sets seed, training,
  /// direction, time and samples of `call`. Errors here and in decode() name codec, edge and
  /// mini-batch.
  void encode(Tensors& message, int peer, CodecCall call);
  /// Decodes a message that encode() made at `peer`. Throws Error{Data} if it is damaged or claims
  /// more values than can cross this edge. Gradients are then passed through the codec that encoded
  /// their activations.
  void decode(Tensors& message, int peer, CodecCall call);
  /// Passes gradients that have crossed without a codec through the codec that encoded their
  /// activations, if one did (Coder::through()).
  void through(Tensors& gradients, int peer, CodecCall call);

  /// The state of all coders, with unique names, for checkpoints.
  NamedTensors state() const;
  /// Restores the state of ends with the same neighbours. Throws Error{Data} if it does not fit.
  void restore(const NamedTensors& state);

 private:
  struct Place {
    int peer = 0;
    bool backward = false;
    int tensor = 0;
    auto operator<=>(const Place&) const = default;
  };
  int edge(int peer) const { return peer < stage_ ? peer : stage_; }
  const NamedCodec& codec(int peer, bool backward) const;
  std::int64_t most_values(int peer) const;
  Coder& coder(const Place& place);
  void encode_all(Tensors& message, int peer, CodecCall call);
  void decode_all(Tensors& message, int peer, CodecCall call);
  void through_all(Tensors& gradients, int peer, CodecCall call);
  template <class Code>
  void named(const CodecCall& call, int peer, const Code& code) const;

  const Compression* compression_;
  int stage_;
  EdgeValues most_;
  std::map<Place, std::unique_ptr<Coder>> coders_;
};

}  // namespace pipewright
