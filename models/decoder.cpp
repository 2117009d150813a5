// SPDX-License-Identifier: Apache-2.0
/// A decoder-only Transformer of options, which continues texts: what Llama (Touvron et al., 2023),
/// GPT-2 (Radford et al., 2019) and the models of speed runs are made of. Each of `layers` blocks
/// adds attention(norm(x)) to its input x, and then mlp(norm(x)).
///
/// Our names and those of Hugging Face's LlamaForCausalLM: embeddings.tokens =
/// model.embed_tokens, layers.<i>.… = model.layers.<i>.…, norm = model.norm, lm_head = lm_head.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/layers/subspace.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

/// What a preset says where the experiment says nothing.
struct Preset {
  const char* name;
  const char *norm = "rms", *positions = "rotary", *mlp = "swiglu";
  std::int64_t vocabulary = 50'257, width = 768, heads = 12, layers = 12;
  bool bias = false, head_bias = false, embedding_norm = false, qk_norm = false, zero_init = false;
  double norm_eps = 1e-5, rotary_base = 10'000, rotary_share = 1, scale = 0, logit_bound = 0;
  bool rotary_reaches_base = false;
};

constexpr Preset kPresets[] = {
    {.name = "llama"},
    {.name = "gpt2", .norm = "layer", .positions = "learned", .mlp = "gelu", .bias = true},
    // PluralisResearch/ProtocolNanoGPT, 2026-09-24: 203,828,352 parameters. Its frequencies reach
    // the base, and its RMS norm adds the format's epsilon, that of float32 here.
    {.name = "slow_links",
     .mlp = "relu2",
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
     .rotary_base = 1024,
     .rotary_share = 0.5,
     .scale = 0.12,
     .logit_bound = 15,
     .rotary_reaches_base = true}};

const Preset& preset_of(Options& options) {
  const std::string chosen = options.choice(
      "preset", {"llama", "gpt2", "slow_links"}, "llama",
      "The defaults of the other options: Llama's parts, GPT-2's (without dropout), or the model "
      "of a public contest "
      "over slow links, in its size (vocabulary 50304, width 1024, 8 heads, 8 layers).");
  for (const Preset& preset : kPresets)
    if (chosen == preset.name) return preset;
  return kPresets[0];
}

class Decoder final : public Model {
 public:
  explicit Decoder(Options& options) : Decoder(options, preset_of(options)) {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all{tie_ == Tie::Same ? lend(embeddings(), "tokens.weight")
                                                : embeddings()};
    all.back()->set_name("embeddings");
    for (std::int64_t i = 0; i < blocks_; ++i) {
      all.push_back(block());
      all.back()->set_name(concat("layers.", i));
    }
    all.push_back(last_norm());
    all.back()->set_name("norm");
    all.push_back(tie_ == Tie::Same ? borrow(output(), "weight") : output(tie_));
    all.back()->set_name("lm_head");
    return all;
  }

  std::int64_t vocabulary() const override { return vocabulary_; }
  std::vector<std::int64_t> input_shape() const override { return {tokens_}; }
  Task task() const override { return Task::Continue; }
  std::int64_t classes() const override { return vocabulary_; }
  bool runs_in_slices() const override { return true; }
  LayerPtr head(std::size_t last_layer) const override {
    if (last_layer > static_cast<std::size_t>(blocks_) + 1) return linear(vocabulary_, vocabulary_);
    return sequence({{"norm", last_norm()}, {"", output()}});
  }

 private:
  Decoder(Options& options, const Preset& preset)
      : vocabulary_(options.integer("vocabulary", preset.vocabulary, "Number of different tokens.",
                                    {2, 1e9})),
        tokens_(options.integer("tokens", 1024, "Largest number of tokens in a sample.", {1, 1e6})),
        width_(options.integer("width", preset.width, "Width of the model: numbers per token.",
                               {1, 1e6})),
        blocks_(options.integer("layers", preset.layers, "Number of blocks.", {1, 1e4})),
        heads_(options.integer("heads", preset.heads,
                               "Number of attention heads of each block, a divisor of the width.",
                               {1, 1e6})),
        mlp_(options.choice(
            "mlp", {"gelu", "swiglu", "relu2"}, preset.mlp,
            "What is between the two matrices of a block's MLP: GELU by tanh, max(x, "
            "0)², or x σ(x) of one matrix times another (SwiGLU).")),
        rms_(options.choice("norm", {"rms", "layer"}, preset.norm, "RMS norm or layer norm.") ==
             "rms"),
        eps_(options.number("norm_eps", preset.norm_eps,
                            "Added to the mean of squares, or the variance.", {0, 1})),
        bias_(
            options.flag("bias", preset.bias, "Whether the linear layers of blocks have biases.")),
        head_bias_(
            options.flag("head_bias", preset.head_bias, "Whether the output layer has one.")),
        subspace_(options.integer(
            "subspace", 0,
            "Numbers per token that stages send: the residual stream is the token's fixed vector "
            "plus a fixed orthonormal matrix times these coordinates, which the embedding and the "
            "matrices that end attention and MLP make. 0: it is as wide as the model.",
            {0, 1e6})),
        embedding_norm_(options.flag("embedding_norm", preset.embedding_norm && subspace_ == 0,
                                     "Whether the embedding is normalised; not with `subspace`.")),
        zero_init_(options.flag("zero_init", preset.zero_init,
                                "Whether the matrices that end attention and MLP begin at 0.")),
        learned_(false),
        dropout_(
            options.number("dropout", 0,
                           "Dropout probability of embeddings, of attention, and of both parts "
                           "of a block.",
                           {0, 0.99})),
        logit_bound_(options.number("logit_bound", preset.logit_bound,
                                    "c > 0: scores x become c x/√(x² + c²); 0: they stay.",
                                    {0, 1e6})),
        tie_(read_tie(options)) {
    read_attention(options, preset);
    const bool gated = mlp_ == "swiglu";
    // 8/3 of the width, up to a multiple of 256, as Llama's: as many weights as two matrices of 4.
    const std::int64_t usual = gated ? (8 * width_ / 3 + 255) / 256 * 256 : 4 * width_;
    hidden_ = options.integer("mlp_width", 0,
                              "Width inside the MLP; 0: 4 times the width, for swiglu 8/3 up to a "
                              "multiple of 256.",
                              {0, 1e7});
    if (hidden_ == 0) hidden_ = usual;
    read_subspace(options);
  }

  void read_subspace(Options& options) {
    if (subspace_ == 0) return;
    if (subspace_ > width_) {
      options.problem("subspace",
                      concat("is ", subspace_, "; expected at most the width, ", width_));
      subspace_ = width_;
    }
    if (vocabulary_ * width_ > kMostFixed)
      options.problem(
          "subspace",
          concat("needs a fixed vector of ", width_, " numbers for each of ", vocabulary_,
                 " tokens in every process; expected at most ", kMostFixed, " numbers in all"));
    if (embedding_norm_)
      options.problem("embedding_norm", "would leave the subspace; leave it out, or `subspace`");
    if (tie_ != Tie::None)
      options.problem("tie",
                      concat("is ", tie_ == Tie::Same ? "same" : "start",
                             ", but with `subspace` the embedding is narrower than the output; "
                             "expected none"));
    fixed_ = std::make_shared<const Subspace>(vocabulary_, width_, subspace_);
  }

  void read_attention(Options& options, const Preset& preset) {
    attention_ = {.dropout = dropout_, .causal = true};
    const std::string positions =
        options.choice("positions", {"rotary", "learned", "none"}, preset.positions,
                       "Queries and keys are rotated by their position, a learned vector is added "
                       "to the embedding, "
                       "or neither.");
    learned_ = positions == "learned";
    RotaryOptions rotary{
        .base = options.number("rotary_base", preset.rotary_base,
                               "The slowest pair of a head is rotated by about position/base.",
                               {1, 1e9}),
        .share = options.number("rotary_share", preset.rotary_share,
                                "Share of a head's pairs that are rotated.", {0, 1}),
        .reaches_base =
            options.flag("rotary_reaches_base", preset.rotary_reaches_base,
                         "Whether the slowest pair is rotated by position/base exactly: the "
                         "exponents of the base "
                         "are i/(n − 1) instead of i/n.")};
    if (positions == "rotary")
      attention_.rotary = rotary;
    else
      refuse_rotary(options, preset, rotary);
    attention_.key_heads = options.integer(
        "kv_heads", 0, "Heads of keys and values, a divisor of `heads`; 0: as many.", {0, 1e6});
    attention_.scale =
        options.number("attention_scale", preset.scale,
                       "Factor of the scores of attention; 0: 1/√(width of a head).", {0, 1e6});
    if (options.flag("qk_norm", preset.qk_norm,
                     "Whether queries and keys are divided by their root mean square."))
      attention_.norm_eps = eps_;
    if (width_ % heads_ != 0) {
      options.problem("heads",
                      concat("is ", heads_, "; expected a divisor of the width, ", width_));
      heads_ = 1;
      attention_.key_heads = 0;
    }
    if (attention_.rotary && (width_ / heads_) % 2 != 0) {
      options.problem("heads", concat("is ", heads_, ", which makes heads of ", width_ / heads_,
                                      " numbers; expected an even number for rotary positions"));
      attention_.rotary.reset();
    }
    if (attention_.key_heads > 0 && heads_ % attention_.key_heads != 0) {
      options.problem("kv_heads", concat("is ", attention_.key_heads,
                                         "; expected a divisor of the heads, ", heads_));
      attention_.key_heads = 0;
    }
    key_width_ = width_ / heads_ * (attention_.key_heads > 0 ? attention_.key_heads : heads_);
  }

  /// Refuses options of rotary positions where there are none.
  static void refuse_rotary(Options& options, const Preset& preset, const RotaryOptions& given) {
    const auto refuse = [&](const char* name, bool changed) {
      if (changed) options.problem(name, "is for positions: rotary; leave it out");
    };
    refuse("rotary_base", given.base != preset.rotary_base);
    refuse("rotary_share", given.share != preset.rotary_share);
    refuse("rotary_reaches_base", given.reaches_base != preset.rotary_reaches_base);
  }

  static constexpr double kInitStd = 0.02;
  static constexpr std::int64_t kMostFixed = std::int64_t{1} << 28;  // 2 GiB while they are drawn

  /// Numbers per token between blocks.
  std::int64_t stream() const { return subspace_ > 0 ? subspace_ : width_; }
  LayerPtr plain_norm() const { return rms_ ? rms_norm(width_, eps_) : layer_norm(width_, eps_); }
  /// The norm of the residual stream, before a part of a block or after the last block.
  LayerPtr norm() const {
    if (!fixed_) return plain_norm();
    return sequence({{"stream", out_of_subspace(fixed_)}, {"", plain_norm()}});
  }
  LayerPtr last_norm() const {
    if (!fixed_) return plain_norm();
    return sequence({{"stream", out_of_subspace(fixed_, false)}, {"", plain_norm()}});
  }

  LayerPtr matrix(std::int64_t in, std::int64_t out,
                  Activation activation = Activation::Identity) const {
    return linear(in, out, {.init_std = kInitStd, .activation = activation, .bias = bias_});
  }
  /// A linear layer whose output is added to the residual stream. There are 2·layers such terms, so
  /// the initial deviation is divided by √(2·layers).
  LayerPtr to_residual(std::int64_t in) const {
    LinearOptions options{.init_std = kInitStd / std::sqrt(2 * static_cast<double>(blocks_)),
                          .bias = bias_};
    if (zero_init_) options.weight = Initializer{Initializer::Kind::Constant, 0};
    return linear(in, stream(), options);
  }
  LayerPtr output(Tie tie = Tie::None) const {
    LayerPtr scores = linear(width_, vocabulary_,
                             {.init_std = kInitStd,
                              .bias = head_bias_,
                              .drawn_as = tie == Tie::Start ? "embeddings.tokens.weight" : ""});
    if (logit_bound_ == 0) return scores;
    return sequence({{"", std::move(scores)}, {"", bound(logit_bound_)}});
  }

  LayerPtr embeddings() const {
    std::vector<NamedLayer> parts{{"tokens", embedding(vocabulary_, stream(), {kInitStd})}};
    if (learned_) {
      LayerPtr places =
          sequence({{"", positions()}, {"", embedding(tokens_, stream(), {kInitStd})}});
      parts = {{"", sum_of({parts[0], {"positions", std::move(places)}})}};
    }
    if (embedding_norm_) parts.emplace_back("norm", plain_norm());
    parts.emplace_back("dropout", dropout(dropout_));
    LayerPtr all = sequence(std::move(parts));
    return fixed_ ? with_tokens(std::move(all), fixed_) : all;
  }

  LayerPtr mlp() const {
    if (mlp_ == "swiglu")
      return sequence({{"", product_of({{"gate_proj", matrix(width_, hidden_, Activation::Silu)},
                                        {"up_proj", matrix(width_, hidden_)}})},
                       {"down_proj", to_residual(hidden_)}});
    return sequence({{"up_proj", matrix(width_, hidden_,
                                        mlp_ == "gelu" ? Activation::GeluTanh : Activation::Relu2)},
                     {"down_proj", to_residual(hidden_)}});
  }

  LayerPtr block() const {
    const auto plus_input = [&](std::vector<NamedLayer> children) {
      children.emplace_back("dropout", dropout(dropout_));
      return residual(sequence(std::move(children)), nullptr, Activation::Identity);
    };
    LayerPtr attended = attention({{"q_proj", matrix(width_, width_)},
                                   {"k_proj", matrix(width_, key_width_)},
                                   {"v_proj", matrix(width_, key_width_)}},
                                  {"o_proj", to_residual(width_)}, heads_, attention_);
    return sequence({{"", plus_input({{"input_layernorm", norm()}, {"self_attn", attended}})},
                     {"", plus_input({{"post_attention_layernorm", norm()}, {"mlp", mlp()}})}});
  }

  std::int64_t vocabulary_, tokens_, width_, blocks_, heads_;
  std::string mlp_;
  bool rms_;
  double eps_;
  bool bias_, head_bias_;
  std::int64_t subspace_;
  bool embedding_norm_, zero_init_, learned_;
  double dropout_, logit_bound_;
  Tie tie_;
  std::int64_t hidden_ = 0, key_width_ = 0;
  AttentionOptions attention_;
  std::shared_ptr<const Subspace> fixed_;  ///< null without a subspace
};

PIPEWRIGHT_MODEL(decoder, Decoder,
                 "Decoder-only Transformer of options, with presets llama, gpt2 and slow_links.");

}  // namespace
}  // namespace pipewright
