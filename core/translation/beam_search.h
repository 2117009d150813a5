/// Beam search with the length and coverage penalties of GNMT (Wu et al., 2016, section 7).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/stage/files/safetensors.h"
#include "core/stage/incremental.h"

namespace pipewright {

struct BeamOptions {
  int beam = 5;         ///< hypotheses kept of each sentence
  int max_length = 80;  ///< tokens of a translation, start and end marks included
  double length_exponent = 0.6, coverage_penalty = 0.1;
};

using Sentences = std::vector<std::vector<std::int64_t>>;

/// A translation model's layers with their values, in evaluation.
class Translator {
 public:
  /// `encoder_layers`: see Model. `weights` have every parameter and buffer under its full name.
  Translator(std::vector<LayerPtr> layers, std::size_t encoder_layers, const TensorFile& weights,
             at::Device device);

  /// Of sources [n, S], tokens without marks. The log-probabilities of a hypothesis are summed.
  /// When all hypotheses of a sentence have ended they compare by
  ///   sum / ((5 + length) / 6)^length_exponent + coverage_penalty Σ over s of log min(Σ attention,
  ///   1),
  /// a source token never attended to counting for nothing; where some have not at the greatest
  /// length, all compare by their sums alone, as in the published code.
  Sentences translate(const at::Tensor& sources, const BeamOptions& options) const;

  /// {source, target so far} to what the decoder is given; the target is the last of them.
  Tensors encode(const at::Tensor& sources, const at::Tensor& targets) const;
  /// One step of the decoder; `carried` has one entry per layer, all empty at first.
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
