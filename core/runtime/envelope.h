// SPDX-License-Identifier: Apache-2.0
/// A message between stages: the tensors of a pass, and what belongs to them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>

#include "core/nn/layer.h"

namespace pipewright {

struct Envelope {
  Tensors tensors;  ///< of the pass, as codecs have encoded them
  /// The floating-point tensors before they were encoded, if an observer compares them.
  std::optional<Tensors> originals = {};
  at::Tensor scale = {};  ///< the loss scale of gradients, an int64 scalar; undefined: none
};

/// The contents of an envelope besides its tensors. Both ends know them without a message.
struct Enclosed {
  bool originals = false, scale = false;
};

/// How many tensors of each sort an envelope holds.
struct EnvelopeContents {
  std::size_t tensors = 0;
  std::optional<std::size_t> originals = {};
  bool scale = false;
};
EnvelopeContents contents_of(const Envelope& envelope);

/// All its tensors in one list, for what carries lists; envelope_of() takes them apart again.
Tensors flat(Envelope envelope);
Envelope envelope_of(Tensors list, const EnvelopeContents& contents);

}  // namespace pipewright
