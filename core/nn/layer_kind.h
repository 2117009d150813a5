// SPDX-License-Identifier: Apache-2.0
/// Kinds of layers that an experiment file may list in `model: {name: sequential}`, besides those
/// that models/parts/layer_list.cpp has.
#pragma once

#include <torch/version.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/nn/layer.h"

namespace pipewright {

/// The form of one sample between two layers: {channels, height, width} of an image, {features},
/// {tokens, width} of a sequence of vectors, or {tokens} of int64 tokens.
struct SampleShape {
  std::vector<std::int64_t> sizes;
  std::int64_t vocabulary = 0;  ///< > 0: tokens below this number

  bool is_image() const { return sizes.size() == 3 && vocabulary == 0; }
  bool is_sequence() const { return sizes.size() == 2 && vocabulary == 0; }
  bool is_flat() const { return sizes.size() == 1 && vocabulary == 0; }
  bool is_tokens() const { return vocabulary > 0; }
  /// "an image [3, 32, 32]", "features [128]", "vectors [16, 64]", "tokens [16]".
  std::string text() const;
};

/// A layer of the list with its options, which the constructor reads.
class LayerKind {
 public:
  virtual ~LayerKind() = default;
  /// Why it refuses such a sample, as in "wants an image"; "": it takes the sample.
  virtual std::string refusal(const SampleShape& /*before*/) const { return {}; }
  /// The shape behind it. The sample is one that it takes.
  virtual SampleShape after(const SampleShape& before) const = 0;
  /// A new layer for such samples, without a name.
  virtual LayerPtr make(const SampleShape& before) const = 0;
};

}  // namespace pipewright

#define PIPEWRIGHT_LAYER(name, Type, summary)  \
  PIPEWRIGHT_STAMP(layer, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::LayerKind, name, Type, summary)
