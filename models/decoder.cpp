// SPDX-License-Identifier: Apache-2.0
/// A decoder-only Transformer of options, which continues texts: what Llama (Touvron et al., 2023),
/// GPT-2 (Radford et al., 2019) and the models of speed runs are made of.
///
/// Our names and those of Hugging Face's LlamaForCausalLM: embeddings.tokens =
/// model.embed_tokens, layers.<i>.… = model.layers.<i>.…, norm = model.norm, lm_head = lm_head.
#include "models/parts/decoder_model.h"

namespace pipewright {
namespace {

/// What the options say where the experiment says nothing.
DecoderParts preset_of(Options& options) {
  const std::string chosen =
      options.choice("preset", {"llama", "gpt2", "slow_links"}, "llama",
                     "The defaults of the other options: Llama's parts, GPT-2's (without dropout), "
                     "or the model of a public contest over slow links, in its size (vocabulary "
                     "50304, width 1024, 8 heads, 8 layers).");
  if (chosen == "gpt2")
    return {.norm = "layer", .positions = "learned", .mlp = "gelu", .bias = true};
  // PluralisResearch/ProtocolNanoGPT, 2026-09-24: 203,828,352 parameters. Its frequencies reach
  // the base, and its RMS norm adds the format's epsilon, that of float32 here.
  if (chosen == "slow_links")
    return {.mlp = "relu2",
            .vocabulary = 50'304,
            .width = 1024,
            .heads = 8,
            .layers = 8,
            .bias = true,
            .head_bias = true,
            .embedding_norm = true,
            .qk_norm = true,
            .zero_init = true,
            .norm_eps = 1.1920928955078125e-07,
            .scale = 0.12,
            .logit_bound = 15,
            .rotary = {.base = 1024, .share = 0.5, .reaches_base = true}};
  return {};
}

void read_blocks(Options& options, DecoderParts& parts) {
  parts.mlp = options.choice("mlp", {"gelu", "swiglu", "relu2"}, parts.mlp,
                             "What is between the two matrices of a block's MLP: GELU by tanh, "
                             "max(x, 0)², or x σ(x) of one matrix times another (SwiGLU).");
  parts.mlp_width = options.integer(
      "mlp_width", 0,
      "Width inside the MLP; 0: 4 times the width, for swiglu 8/3 up to a multiple of 256.",
      {0, 1e7});
  parts.norm = options.choice("norm", {"rms", "layer"}, parts.norm, "RMS norm or layer norm.");
  parts.norm_eps = options.number("norm_eps", parts.norm_eps,
                                  "Added to the mean of squares, or the variance.", {0, 1});
  parts.bias = options.flag("bias", parts.bias, "Whether the linear layers of blocks have biases.");
  parts.head_bias = options.flag("head_bias", parts.head_bias, "Whether the output layer has one.");
  parts.zero_init = options.flag("zero_init", parts.zero_init,
                                 "Whether the matrices that end attention and MLP begin at 0.");
  parts.logit_bound =
      options.number("logit_bound", parts.logit_bound,
                     "c > 0: scores x become c x/√(x² + c²); 0: they stay.", {0, 1e6});
}

void read_subspace(Options& options, DecoderParts& parts) {
  constexpr std::int64_t kMostFixed = std::int64_t{1} << 28;  // 2 GiB while they are drawn
  parts.subspace = options.integer(
      "subspace", 0,
      "Numbers per token that stages send: the residual stream is the token's fixed vector plus a "
      "fixed orthonormal matrix times these coordinates, which the embedding and the matrices that "
      "end attention and MLP make. 0: it is as wide as the model.",
      {0, 1e6});
  parts.embedding_norm = options.flag("embedding_norm", parts.embedding_norm && parts.subspace == 0,
                                      "Whether the embedding is normalised; not with `subspace`.");
  if (parts.subspace == 0) return;
  if (parts.subspace > parts.width) {
    options.problem("subspace",
                    concat("is ", parts.subspace, "; expected at most the width, ", parts.width));
    parts.subspace = parts.width;
  }
  if (parts.vocabulary * parts.width > kMostFixed)
    options.problem(
        "subspace",
        concat("needs a fixed vector of ", parts.width, " numbers for each of ", parts.vocabulary,
               " tokens in every process; expected at most ", kMostFixed, " numbers in all"));
  if (parts.embedding_norm)
    options.problem("embedding_norm", "would leave the subspace; leave it out, or `subspace`");
  if (parts.tie != Tie::None)
    options.problem(
        "tie",
        "is given, but with `subspace` the embedding is narrower than the output; expected none");
}

/// Refuses options of rotary positions where there are none.
void read_positions(Options& options, DecoderParts& parts) {
  parts.positions = options.choice("positions", {"rotary", "learned", "none"}, parts.positions,
                                   "Queries and keys are rotated by their position, a learned "
                                   "vector is added to the embedding, or neither.");
  const RotaryOptions usual = parts.rotary;
  parts.rotary = {
      .base =
          options.number("rotary_base", usual.base,
                         "The slowest pair of a head is rotated by about position/base.", {1, 1e9}),
      .share = options.number("rotary_share", usual.share,
                              "Share of a head's pairs that are rotated.", {0, 1}),
      .reaches_base = options.flag("rotary_reaches_base", usual.reaches_base,
                                   "Whether the slowest pair is rotated by position/base exactly: "
                                   "the exponents of the base are i/(n − 1) instead of i/n.")};
  const auto refuse = [&](const char* name, bool changed) {
    if (changed && parts.positions != "rotary")
      options.problem(name, "is for positions: rotary; leave it out");
  };
  refuse("rotary_base", parts.rotary.base != usual.base);
  refuse("rotary_share", parts.rotary.share != usual.share);
  refuse("rotary_reaches_base", parts.rotary.reaches_base != usual.reaches_base);
  if (const std::int64_t head = parts.width / parts.heads;
      parts.positions == "rotary" && head % 2 != 0) {
    options.problem("heads", concat("is ", parts.heads, ", which makes heads of ", head,
                                    " numbers; expected an even number for rotary positions"));
    parts.positions = "none";
  }
}

void read_attention(Options& options, DecoderParts& parts) {
  read_positions(options, parts);
  parts.key_heads = options.integer(
      "kv_heads", 0, "Heads of keys and values, a divisor of `heads`; 0: as many.", {0, 1e6});
  parts.scale =
      options.number("attention_scale", parts.scale,
                     "Factor of the scores of attention; 0: 1/√(width of a head).", {0, 1e6});
  parts.qk_norm = options.flag("qk_norm", parts.qk_norm,
                               "Whether queries and keys are divided by their root mean square.");
  if (parts.key_heads == 0 || parts.heads % parts.key_heads == 0) return;
  options.problem("kv_heads", concat("is ", parts.key_heads, "; expected a divisor of the heads, ",
                                     parts.heads));
  parts.key_heads = 0;
}

DecoderParts read_decoder(Options& options) {
  DecoderParts parts = preset_of(options);
  read_sizes(options, parts);
  read_blocks(options, parts);
  read_attention(options, parts);
  read_subspace(options, parts);
  return parts;
}

struct Decoder final : DecoderModel {
  explicit Decoder(Options& options) : DecoderModel(read_decoder(options)) {}
};

PIPEWRIGHT_MODEL(decoder, Decoder,
                 "Decoder-only Transformer of options, with presets llama, gpt2 and slow_links.");

}  // namespace
}  // namespace pipewright
