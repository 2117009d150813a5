// SPDX-License-Identifier: Apache-2.0
/// A decoder-only Transformer, which continues texts: token embedding, blocks that each add
/// attention(norm(x)) to their input x and then mlp(norm(x)), a last norm, and an output layer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/layers/subspace.h"
#include "core/nn/model.h"

namespace pipewright {

/// What layers are called; the defaults are those of Hugging Face's LlamaForCausalLM.
struct DecoderNames {
  std::string tokens = "tokens", positions = "positions";  ///< of the layer "embeddings"
  std::string blocks = "layers.", last_norm = "norm", output = "lm_head";
  std::string attention_norm = "input_layernorm", attention = "self_attn",
              ends_attention = "o_proj";
  std::string qkv = {};  ///< of one matrix for queries, keys and values; empty: q_proj, k_proj, …
  std::string mlp_norm = "post_attention_layernorm", up = "up_proj", down = "down_proj";
};

/// What the model is made of. Sizes fit each other.
struct DecoderParts {
  DecoderNames names = {};
  std::string norm = "rms", positions = "rotary", mlp = "swiglu";  ///< choices of `decoder`
  std::int64_t vocabulary = 50'257, tokens = 1024, width = 768, heads = 12, layers = 12;
  std::int64_t mlp_width = 0, key_heads = 0, subspace = 0;  ///< 0: the usual width; `heads`; none
  bool bias = false, head_bias = false, embedding_norm = false, qk_norm = false, zero_init = false;
  double norm_eps = 1e-5, scale = 0, logit_bound = 0, dropout = 0;
  RotaryOptions rotary = {};
  Tie tie = Tie::None;
};

/// Reads the sizes, `dropout` and `tie`; what the options leave out stays.
void read_sizes(Options& options, DecoderParts& parts);

class DecoderModel : public Model, public FixedNumbers {
 public:
  explicit DecoderModel(DecoderParts parts);

  std::vector<LayerPtr> layers() const final;
  std::int64_t vocabulary() const final { return parts_.vocabulary; }
  std::vector<std::int64_t> input_shape() const final { return {parts_.tokens}; }
  Task task() const final { return Task::Continue; }
  std::int64_t classes() const final { return parts_.vocabulary; }
  bool runs_in_slices() const final { return true; }
  LayerPtr head(std::size_t last_layer) const final;
  std::int64_t fixed_numbers() const final { return fixed_ ? fixed_->numbers() : 0; }

 private:
  DecoderParts parts_;
  std::shared_ptr<const Subspace> fixed_;  ///< null without a subspace
};

}  // namespace pipewright
