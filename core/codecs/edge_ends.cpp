// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/edge_ends.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/text.h"
#include "core/codecs/edge_coding.h"
#include "core/system/foreign_error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

int number(const std::string& text) {
  if (const auto value = parsed<int>(text)) return *value;
  throw Error(ErrorKind::Data, concat("'", text, "' is no number in a name of an edge's state"));
}

}  // namespace

const NamedCodec& EdgeEnds::codec(int peer, bool backward) const {
  const EdgeCodecs& codecs = (*compression_)[as_size(edge(peer))];
  return backward ? codecs.backward : codecs.forward;
}

std::int64_t EdgeEnds::most_values(int peer) const {
  return most_.empty() ? kAnyValues : most_[as_size(edge(peer))];
}

bool EdgeEnds::compresses(int peer, const CodecCall& call) const {
  if (compression_->empty() || !codec(peer, call.backward).codec) return false;
  return call.training || (*compression_)[as_size(edge(peer))].in_evaluation;
}

Coder& EdgeEnds::coder(const Place& place) {
  std::unique_ptr<Coder>& coder = coders_[place];
  if (!coder) coder = codec(place.peer, place.backward).codec->coder();
  return *coder;
}

/// Calls `code`, which encodes or decodes. What it throws then says of which edge and when.
template <class Code>
void EdgeEnds::named(const CodecCall& call, int peer, const Code& code) const {
  try {
    code();
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    const bool bug = known != nullptr && known->kind() == ErrorKind::Bug;
    if (bug || (known != nullptr && !known->where().empty()) || machine_error(error)) throw;
    throw Error(known != nullptr ? known->kind() : ErrorKind::Worker,
                concat("codec ", codec(peer, call.backward).name, " of the edge between stages ",
                       std::min(stage_, peer), " and ", std::max(stage_, peer), ", mini-batch ",
                       call.minibatch, " of epoch ", call.epoch, ": ",
                       known != nullptr ? known->message() : first_line(error)));
  }
}

void EdgeEnds::encode(Tensors& message, int peer, CodecCall call) {
  named(call, peer, [&] { encode_all(message, peer, call); });
}

void EdgeEnds::decode(Tensors& message, int peer, CodecCall call) {
  named(call, peer, [&] { decode_all(message, peer, call); });
  if (call.backward) through(message, peer, call);
}

void EdgeEnds::through(Tensors& gradients, int peer, CodecCall call) {
  call.backward = false;
  if (compresses(peer, call)) named(call, peer, [&] { through_all(gradients, peer, call); });
}

void EdgeEnds::encode_all(Tensors& message, int peer, CodecCall call) {
  call.edge = edge(peer);
  Tensors crossing;
  for (const at::Tensor& tensor : message) {
    if (!tensor.is_floating_point()) {
      PIPEWRIGHT_CHECK(tensor.scalar_type() != at::kByte, "a boundary carries bytes");
      crossing.push_back(tensor);
      continue;
    }
    const Place place{peer, call.backward, call.tensor};
    Encoded encoded =
        pipewright::encode(coder(place), codec(peer, call.backward).name, tensor, call);
    crossing.push_back(std::move(encoded.bytes));
    if (encoded.like.defined()) crossing.push_back(std::move(encoded.like));
    ++call.tensor;
  }
  message = std::move(crossing);
}

void EdgeEnds::decode_all(Tensors& message, int peer, CodecCall call) {
  call.edge = edge(peer);
  Tensors arrived;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message[i].scalar_type() != at::kByte) {
      arrived.push_back(std::move(message[i]));
      continue;
    }
    Encoded encoded{message[i], {}};
    if (i + 1 < message.size() && message[i + 1].is_floating_point()) encoded.like = message[++i];
    const Place place{peer, call.backward, call.tensor};
    arrived.push_back(pipewright::decode(coder(place), codec(peer, call.backward).name, encoded,
                                         call, most_values(peer)));
    ++call.tensor;
  }
  message = std::move(arrived);
}

/// An empty tensor holds the place of the gradient of an integer, which no codec has encoded.
void EdgeEnds::through_all(Tensors& gradients, int peer, CodecCall call) {
  call.edge = edge(peer);
  call.tensor = 0;
  for (at::Tensor& gradient : gradients) {
    if (gradient.numel() == 0) continue;
    gradient = coder({peer, false, call.tensor}).through(gradient, call);
    ++call.tensor;
  }
}

NamedTensors EdgeEnds::state() const {
  NamedTensors all;
  for (const auto& [place, coder] : coders_)
    for (auto& [name, tensor] : coder->state())
      all.emplace_back(concat(place.peer, ".", place.backward ? "backward" : "forward", ".",
                              place.tensor, ".", name),
                       tensor);
  return all;
}

void EdgeEnds::restore(const NamedTensors& state) {
  std::map<Place, NamedTensors> parts;
  for (const auto& [name, tensor] : state) {
    const std::vector<std::string> words = split(name, '.');
    if (words.size() < 4) throw Error(ErrorKind::Data, concat("'", name, "' is no edge's state"));
    const Place place{number(words[0]), words[1] == "backward", number(words[2])};
    const std::size_t before = words[0].size() + words[1].size() + words[2].size() + 3;
    parts[place].emplace_back(name.substr(before), tensor);
  }
  for (const auto& [place, tensors] : parts) {
    const bool known = place.peer >= 0 && place.peer != stage_ &&
                       edge(place.peer) < static_cast<int>(compression_->size()) &&
                       codec(place.peer, place.backward).codec;
    if (!known)
      throw Error(ErrorKind::Data, concat("holds a state of the edge to stage ", place.peer,
                                          ", which has no codec"));
    coder(place).restore(tensors);
  }
}

}  // namespace pipewright
