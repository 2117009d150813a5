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
#include <cmath>
#include <string>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

constexpr double kGptInitStd = 0.02;

class Gpt final : public Model {
 public:
  explicit Gpt(Options& options)
      : vocabulary_(options.integer("vocabulary", 50'257, "Number of different tokens.", {2, 1e9})),
        tokens_(options.integer("tokens", 1024, "Largest number of tokens in a sample.", {1, 1e6})),
        width_(options.integer("width", 768, "Width of the model: numbers per token.", {1, 1e6})),
        heads_(options.integer("heads", 12,
                               "Number of attention heads of each block, a divisor of the width.",
                               {1, 1e6})),
        blocks_(options.integer("layers", 12, "Number of decoder blocks.", {1, 1e4})),
        dropout_(
            options.number("dropout", 0.1,
                           "Dropout probability of embeddings, of attention, and of both parts of "
                           "a block.",
                           {0, 0.99})),
        tie_(read_tie(options)) {
    if (options.flag(
            "tie_weights", false,
            "Whether token embedding and output share a weight: `tie` says that, so only false."))
      options.problem("tie_weights", "is true; expected false, and `tie: same` beside it");
    if (width_ % heads_ == 0) return;
    options.problem("heads", concat("is ", heads_, "; expected a divisor of the width, ", width_));
    heads_ = 1;
  }

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all{tie_ == Tie::Same ? lend(embeddings(), "wte.weight") : embeddings()};
    all.back()->set_name("embeddings");
    for (std::int64_t i = 0; i < blocks_; ++i) {
      all.push_back(block());
      all.back()->set_name(concat("h.", i));
    }
    all.push_back(layer_norm(width_));
    all.back()->set_name("final");
    all.push_back(tie_ == Tie::Same ? borrow(output(), "weight") : output(tie_));
    all.back()->set_name("head");
    return all;
  }

  std::int64_t vocabulary() const override { return vocabulary_; }
  std::vector<std::int64_t> input_shape() const override { return {tokens_}; }
  Task task() const override { return Task::Continue; }
  std::int64_t classes() const override { return vocabulary_; }
  bool runs_in_slices() const override { return true; }
  LayerPtr head(std::size_t last_layer) const override {
    if (last_layer > static_cast<std::size_t>(blocks_) + 1) return linear(vocabulary_, vocabulary_);
    return sequence({{"norm", layer_norm(width_)}, {"", output()}});
  }

 private:
  static LayerPtr plus_input(std::vector<NamedLayer> children) {
    return residual(sequence(std::move(children)), nullptr, Activation::Identity);
  }
  LayerPtr widen(std::int64_t times, Activation activation = Activation::Identity) const {
    return linear(width_, times * width_, {.init_std = kGptInitStd, .activation = activation});
  }
  /// A linear layer whose output is added to the residual stream. There are 2·layers such terms, so
  /// the initial deviation is divided by √(2·layers).
  LayerPtr to_residual(std::int64_t from) const {
    return linear(from, width_,
                  {.init_std = kGptInitStd / std::sqrt(2 * static_cast<double>(blocks_))});
  }
  LayerPtr output(Tie tie = Tie::None) const {
    return linear(width_, vocabulary_,
                  {.init_std = kGptInitStd,
                   .bias = false,
                   .drawn_as = tie == Tie::Start ? "embeddings.wte.weight" : ""});
  }

  LayerPtr embeddings() const {
    LayerPtr wpe = sequence({{"", positions()}, {"", embedding(tokens_, width_, {kGptInitStd})}});
    return sequence({{"", sum_of({{"wte", embedding(vocabulary_, width_, {kGptInitStd})},  //
                                  {"wpe", std::move(wpe)}})},
                     {"dropout", dropout(dropout_)}});
  }

  LayerPtr block() const {
    LayerPtr attended = attention({{"c_attn", widen(3)}}, {"c_proj", to_residual(width_)}, heads_,
                                  {.dropout = dropout_, .causal = true});
    return sequence({{"", plus_input({{"ln_1", layer_norm(width_)},
                                      {"attn", attended},
                                      {"dropout", dropout(dropout_)}})},
                     {"", plus_input({{"ln_2", layer_norm(width_)},
                                      {"mlp.c_fc", widen(4, Activation::GeluTanh)},
                                      {"mlp.c_proj", to_residual(4 * width_)},
                                      {"dropout", dropout(dropout_)}})}});
  }

  std::int64_t vocabulary_, tokens_, width_, heads_, blocks_;
  double dropout_;
  Tie tie_;
};

PIPEWRIGHT_MODEL(gpt, Gpt, "Decoder-only Transformer of GPT-2's shape.");

}  // namespace
}  // namespace pipewright
