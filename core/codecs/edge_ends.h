/// The ends of the edges at one stage replica: whole messages to bytes and back.
///
/// Floating-point tensors of a message are encoded; integers and truth values (ids, masks) cross as
/// they are. A message between stages that are no neighbours, of skip connections, is compressed as
/// the edge behind the stage it comes from (or, a gradient, goes back to).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/codecs/codec.h"
#include "core/stage/layer.h"

namespace pipewright {

/// A codec and the name it is registered by; null: tensors cross as they are.
struct NamedCodec {
  std::string name = "none";
  std::shared_ptr<const Codec> codec;
};

/// One direction may be compressed and the other not.
struct EdgeCodecs {
  NamedCodec forward, backward;
  bool in_evaluation = true;  ///< or only in training
};

/// Of each edge, by the stage before it. Empty: nothing is compressed.
using Compression = std::vector<EdgeCodecs>;
/// How many values a tensor at each edge has at most. Empty: that is not known.
using EdgeValues = std::vector<std::int64_t>;

/// Whether samples' indices are to be in CodecCall.
bool by_sample(const Compression& compression);

class EdgeEnds {
 public:
  /// `compression` outlives it.
  EdgeEnds(const Compression& compression, int stage, EdgeValues most = {})
      : compression_(&compression), stage_(stage), most_(std::move(most)) {}

  /// Whether messages to or from that stage are changed at all.
  bool compresses(int peer, const CodecCall& call) const;
  /// A message to `peer`: what crosses instead. `call`: seed, time and samples; the rest is filled
  /// in.
  void encode(Tensors& message, int peer, CodecCall call);
  /// A message from `peer`, as encode() left it there. Throws Error{Data} where it is damaged or
  /// claims more values than cross there.
  void decode(Tensors& message, int peer, CodecCall call);

  /// What the coders remember from one mini-batch to the next, with names of their own.
  NamedTensors state() const;
  /// Of ends with the same neighbours. Throws Error{Data} where it does not fit.
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

  const Compression* compression_;
  int stage_;
  EdgeValues most_;
  std::map<Place, std::unique_ptr<Coder>> coders_;
};

}  // namespace pipewright
