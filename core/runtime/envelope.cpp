// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/envelope.h"

#include <iterator>
#include <utility>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// Moves the last `count` tensors out of a list.
Tensors taken_from_end(Tensors& list, std::size_t count) {
  const auto first = list.end() - static_cast<std::ptrdiff_t>(count);
  Tensors taken(std::make_move_iterator(first), std::make_move_iterator(list.end()));
  list.erase(first, list.end());
  return taken;
}

}  // namespace

EnvelopeContents contents_of(const Envelope& envelope) {
  EnvelopeContents contents{.tensors = envelope.tensors.size(), .scale = envelope.scale.defined()};
  if (envelope.originals) contents.originals = envelope.originals->size();
  return contents;
}

Tensors flat(Envelope envelope) {
  Tensors list = std::move(envelope.tensors);
  if (envelope.originals) list.append(envelope.originals->begin(), envelope.originals->end());
  if (envelope.scale.defined()) list.push_back(std::move(envelope.scale));
  return list;
}

Envelope envelope_of(Tensors list, const EnvelopeContents& contents) {
  PIPEWRIGHT_CHECK(
      list.size() == contents.tensors + contents.originals.value_or(0) + (contents.scale ? 1 : 0),
      "an envelope of ", list.size(), " tensors is to hold ", contents.tensors, " and ",
      contents.originals.value_or(0), " originals");
  Envelope envelope;
  if (contents.scale) envelope.scale = list.pop_back_val();
  if (contents.originals) envelope.originals = taken_from_end(list, *contents.originals);
  envelope.tensors = std::move(list);
  return envelope;
}

}  // namespace pipewright
