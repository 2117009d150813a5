// SPDX-License-Identifier: Apache-2.0
/// Beam search with the length and coverage penalties of GNMT (Wu et al., 2016, section 7).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/nn/incremental.h"
#include "core/tensor_files/safetensors.h"

namespace pipewright {

struct BeamOptions {
  int beam = 5;         ///< hypotheses kept for each sentence
  int max_length = 80;  ///< most tokens of a translation, including start and end tokens
  double length_exponent = 0.6, coverage_penalty = 0.1;
};

using Sentences = std::vector<std::vector<std::int64_t>>;

/// The layers of a translation model with their weights, in evaluation mode.
class Translator {
 public:
  /// `encoder_layers`: see Model::encoder_layers(). `weights` has every parameter and buffer under
  /// its full name.
  Translator(std::vector<LayerPtr> layers, std::size_t encoder_layers, const TensorFile& weights,
             at::Device device);

  /// Translates sources [n, S]; the result has tokens without start and end tokens. The score of a
  /// hypothesis is the sum of its log-probabilities. Once all hypotheses of a sentence have ended,
  /// they are compared by
  ///   sum / ((5 + length) / 6)^length_exponent + coverage_penalty Σ over s of log min(Σ attention,
  ///   1),
  /// where source tokens without any attention are left out. If some have not ended at the greatest
  /// length, all are compared by their sums alone, as in the published code.
  Sentences translate(const at::Tensor& sources, const BeamOptions& options) const;

  /// Runs the encoder on {source, target so far}. Returns the decoder's inputs; the last one is the
  /// target.
  Tensors encode(const at::Tensor& sources, const at::Tensor& targets) const;
  /// Performs one step of the decoder. `carried` has one entry per layer, all empty at first.
  at::Tensor decode(Tensors inputs, std::vector<Carried>& carried) const;
  std::size_t decoder_layers() const { return layers_.size() - encoder_layers_; }
  at::Device device() const { return device_; }

 private:
  struct Network {
    LayerPtr layer;
    std::vector<at::Tensor> parameters, buffers;
  };
  Tensors run(const Network& network, const Tensors& inputs) const;

  std::vector<Network> layers_;
  std::size_t encoder_layers_;
  at::Device device_;
};

}  // namespace pipewright
