// SPDX-License-Identifier: Apache-2.0
/// A decoder-only Transformer of GPT-2's shape (Radford et al., 2019) that continues texts: learned
/// positions, pre-norm blocks, GELU by tanh, causal attention. The small size has GPT-2's
/// 124,439,808 parameters with `tie: same`, else 163,037,184: a separate weight of the output
/// layer.
///
/// Our names and those of Hugging Face's GPT2LMHeadModel: embeddings.wte = transformer.wte,
/// embeddings.wpe = transformer.wpe, h.<i>.… = transformer.h.<i>.…, final = transformer.ln_f, head
/// = lm_head. Our weights of c_attn, c_proj and c_fc are [out, in]; those of Hugging Face are
/// transposed.
#include "models/parts/decoder_model.h"

namespace pipewright {
namespace {

DecoderParts read_gpt(Options& options) {
  DecoderParts parts{.names = {.tokens = "wte",
                               .positions = "wpe",
                               .blocks = "h.",
                               .last_norm = "final",
                               .output = "head",
                               .attention_norm = "ln_1",
                               .attention = "attn",
                               .ends_attention = "c_proj",
                               .qkv = "c_attn",
                               .mlp_norm = "ln_2",
                               .up = "c_fc",
                               .down = "c_proj"},
                     .norm = "layer",
                     .positions = "learned",
                     .mlp = "gelu",
                     .bias = true,
                     .dropout = 0.1};
  read_sizes(options, parts);
  if (options.flag(
          "tie_weights", false,
          "Whether token embedding and output share a weight: `tie` says that, so only false."))
    options.problem("tie_weights", "is true; expected false, and `tie: same` beside it");
  return parts;
}

struct Gpt final : DecoderModel {
  explicit Gpt(Options& options) : DecoderModel(read_gpt(options)) {}
};

PIPEWRIGHT_MODEL(gpt, Gpt, "Decoder-only Transformer of GPT-2's shape.");

}  // namespace
}  // namespace pipewright
