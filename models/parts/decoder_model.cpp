// SPDX-License-Identifier: Apache-2.0
#include "models/parts/decoder_model.h"

#include <cmath>
#include <utility>

namespace pipewright {
namespace {

constexpr double kInitStd = 0.02;

/// Makes the layers. `fixed` is null without a subspace.
struct Builder {
  const DecoderParts& parts;
  const std::shared_ptr<const Subspace>& fixed;

  /// Numbers per token between blocks.
  std::int64_t stream() const { return fixed ? parts.subspace : parts.width; }

  LayerPtr plain_norm() const {
    return parts.norm == "rms" ? rms_norm(parts.width, parts.norm_eps)
                               : layer_norm(parts.width, parts.norm_eps);
  }

  /// The norm of the residual stream, before a part of a block or after the last block.
  LayerPtr norm(bool last) const {
    if (!fixed) return plain_norm();
    return sequence({{"stream", out_of_subspace(fixed, !last)}, {"", plain_norm()}});
  }

  LayerPtr matrix(std::int64_t in, std::int64_t out,
                  Activation activation = Activation::Identity) const {
    return linear(in, out, {.init_std = kInitStd, .activation = activation, .bias = parts.bias});
  }

  /// A linear layer whose output is added to the residual stream. There are 2·layers such terms, so
  /// the initial deviation is divided by √(2·layers).
  LayerPtr to_residual(std::int64_t in) const {
    LinearOptions options{.init_std = kInitStd / std::sqrt(2 * static_cast<double>(parts.layers)),
                          .bias = parts.bias};
    if (parts.zero_init) options.weight = Initializer{Initializer::Kind::Constant, 0};
    return linear(in, stream(), options);
  }

  LayerPtr output() const {
    LayerPtr scores =
        linear(parts.width, parts.vocabulary, {.init_std = kInitStd, .bias = parts.head_bias});
    if (parts.logit_bound == 0) return scores;
    return sequence({{"", std::move(scores)}, {"", bound(parts.logit_bound)}});
  }

  LayerPtr embeddings() const {
    std::vector<NamedLayer> children{
        {parts.names.tokens, embedding(parts.vocabulary, stream(), {kInitStd})}};
    if (parts.positions == "learned") {
      LayerPtr places =
          sequence({{"", positions()}, {"", embedding(parts.tokens, stream(), {kInitStd})}});
      children = {{"", sum_of({children[0], {parts.names.positions, std::move(places)}})}};
    }
    if (parts.embedding_norm) children.emplace_back("norm", plain_norm());
    children.emplace_back("dropout", dropout(parts.dropout));
    LayerPtr all = sequence(std::move(children));
    return fixed ? with_tokens(std::move(all), fixed) : all;
  }

  LayerPtr attended() const {
    AttentionOptions options{.dropout = parts.dropout,
                             .causal = true,
                             .key_heads = parts.key_heads,
                             .scale = parts.scale};
    if (parts.qk_norm) options.norm_eps = parts.norm_eps;
    if (parts.positions == "rotary") options.rotary = parts.rotary;
    const std::int64_t width = parts.width, keys = width / parts.heads * parts.key_heads;
    std::vector<NamedLayer> projections;
    if (!parts.names.qkv.empty())
      projections = {{parts.names.qkv, matrix(width, width + 2 * keys)}};
    else
      projections = {{"q_proj", matrix(width, width)},
                     {"k_proj", matrix(width, keys)},
                     {"v_proj", matrix(width, keys)}};
    return attention(std::move(projections), {parts.names.ends_attention, to_residual(width)},
                     parts.heads, options);
  }

  LayerPtr mlp() const {
    const std::int64_t width = parts.width, hidden = parts.mlp_width;
    NamedLayer down{parts.names.down, to_residual(hidden)};
    if (parts.mlp == "swiglu")
      return sequence({{"", product_of({{"gate_proj", matrix(width, hidden, Activation::Silu)},
                                        {parts.names.up, matrix(width, hidden)}})},
                       std::move(down)});
    const auto activation = parts.mlp == "gelu" ? Activation::GeluTanh : Activation::Relu2;
    return sequence({{parts.names.up, matrix(width, hidden, activation)}, std::move(down)});
  }

  LayerPtr block() const {
    const auto plus_input = [&](std::vector<NamedLayer> children) {
      children.emplace_back("dropout", dropout(parts.dropout));
      return residual(sequence(std::move(children)), nullptr, Activation::Identity);
    };
    const DecoderNames& names = parts.names;
    return sequence(
        {{"", plus_input({{names.attention_norm, norm(false)}, {names.attention, attended()}})},
         {"", plus_input({{names.mlp_norm, norm(false)}, {"mlp", mlp()}})}});
  }
};

}  // namespace

void read_sizes(Options& options, DecoderParts& parts) {
  parts.vocabulary =
      options.integer("vocabulary", parts.vocabulary, "Number of different tokens.", {2, 1e9});
  parts.tokens =
      options.integer("tokens", parts.tokens, "Largest number of tokens in a sample.", {1, 1e6});
  parts.width =
      options.integer("width", parts.width, "Width of the model: numbers per token.", {1, 1e6});
  parts.heads =
      options.integer("heads", parts.heads,
                      "Number of attention heads of each block, a divisor of the width.", {1, 1e6});
  parts.layers = options.integer("layers", parts.layers, "Number of blocks.", {1, 1e4});
  parts.dropout = options.number(
      "dropout", parts.dropout,
      "Dropout probability of embeddings, of attention, and of both parts of a block.", {0, 0.99});
  parts.tie = read_tie(
      options,
      "What the token embedding and the output share. none: nothing. start: they are equal when "
      "the training starts, and then each has its own updates. same: they are one tensor, which "
      "belongs to the first stage: it sends the weights that its forward has read to the last, "
      "which sends their gradient back. late: each stage has a copy and reads its newest; each "
      "applies its own gradient at once and the other's when the schedule has brought it.");
  if (parts.width % parts.heads == 0) return;
  options.problem("heads",
                  concat("is ", parts.heads, "; expected a divisor of the width, ", parts.width));
  parts.width = (parts.width / (2 * parts.heads) + 1) * 2 * parts.heads;
}

DecoderModel::DecoderModel(DecoderParts parts) : parts_(std::move(parts)) {
  if (parts_.key_heads == 0) parts_.key_heads = parts_.heads;
  if (parts_.mlp_width == 0)  // swiglu has as many weights as two matrices of 4
    parts_.mlp_width =
        parts_.mlp == "swiglu" ? (8 * parts_.width / 3 + 255) / 256 * 256 : 4 * parts_.width;
  if (parts_.subspace > 0)
    fixed_ = std::make_shared<const Subspace>(parts_.vocabulary, parts_.width, parts_.subspace);
}

std::vector<LayerPtr> DecoderModel::layers() const {
  const Builder build{parts_, fixed_};
  const DecoderNames& names = parts_.names;
  std::vector<LayerPtr> all;
  const auto add = [&](std::string name, LayerPtr layer) {
    layer->set_name(std::move(name));
    all.push_back(std::move(layer));
  };
  const std::string embedding = names.tokens + ".weight";
  LayerPtr first = build.embeddings(), last = build.output();
  if (parts_.tie == Tie::Same) {
    first = sharing(std::move(first), {.lends = {embedding}});
    last = sharing(std::move(last), {.takes = {"weight"}});
  } else if (parts_.tie != Tie::None) {
    last = sharing(std::move(last), {.copies = {{.parameter = "weight",
                                                 .name = "weight",
                                                 .of = "embeddings." + embedding,
                                                 .gradients = parts_.tie == Tie::Late}}});
  }
  add("embeddings", std::move(first));
  for (std::int64_t i = 0; i < parts_.layers; ++i) add(concat(names.blocks, i), build.block());
  add(names.last_norm, build.norm(true));
  add(names.output, std::move(last));
  return all;
}

LayerPtr DecoderModel::head(std::size_t last_layer) const {
  if (fixed_) return nullptr;  // its norm would need the tokens, and a head is given one tensor
  if (last_layer > static_cast<std::size_t>(parts_.layers) + 1)
    return linear(parts_.vocabulary, parts_.vocabulary);
  const Builder build{parts_, fixed_};
  return sequence({{"norm", build.norm(true)}, {"", build.output()}});
}

}  // namespace pipewright
