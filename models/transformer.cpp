// SPDX-License-Identifier: Apache-2.0
/// SpecTrain's Transformer for IMDb reviews: 1,621,250 parameters in 55 tensors. Layers and cuts
/// are those of the published code, whose peculiarities are kept:
/// - embedded tokens pass through a linear layer; positions are another linear layer applied to the
/// rows of the identity, that is a learned vector each, plus a bias;
/// - the second residual connection of a block adds the block's input, not the result of the first:
///   a = norm1(x + dropout(attention(x))), y = norm2(x + dropout(linear2(relu(linear1(a)))));
/// - padding is not masked: tokens attend to it, and it counts in the mean over the tokens. Samples
/// with fewer than `tokens` tokens use the first positions.
#include <string>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

class Transformer final : public Model {
 public:
  explicit Transformer(Options& options)
      : vocabulary_(options.integer("vocabulary", 10'000, "Number of different tokens.", {2, 1e9})),
        tokens_(options.integer("tokens", 200, "Largest number of tokens in a sample.", {1, 1e6})),
        width_(options.integer("width", 128, "Width of the model: numbers per token.", {1, 1e6})),
        heads_(options.integer("heads", 4,
                               "Number of attention heads of each block, a divisor of the width.",
                               {1, 1e6})),
        feed_forward_(options.integer(
            "feed_forward", 128,
            "Width between the two linear layers of a block's feed-forward part.", {1, 1e7})),
        blocks_(options.integer("blocks", 3, "Number of attention blocks.", {1, 1e4})),
        classes_(options.integer("classes", 2, "Number of classes.", {1, 1e9})),
        dropout_(options.number("dropout", 0.5,
                                "Dropout probability at each of a block's two places.", {0, 0.99})),
        linear_std_(
            options.number("linear_std", 0.01,
                           "Standard deviation of the initial weights of linear layers, whose "
                           "biases start at 0; 0 = both uniform, as PyTorch initialises them.",
                           kFraction)) {
    if (width_ % heads_ == 0) return;
    options.problem("heads", concat("is ", heads_, "; expected a divisor of the width, ", width_));
    heads_ = 1;
  }

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all{embeddings()};
    all.back()->set_name("embeddings");
    for (std::int64_t i = 1; i <= blocks_; ++i) {
      all.push_back(block());
      all.back()->set_name(concat("block", i));
    }
    all.push_back(classifier());
    all.back()->set_name("classifier");
    return all;
  }

  std::int64_t vocabulary() const override { return vocabulary_; }
  std::vector<std::int64_t> input_shape() const override { return {tokens_}; }
  std::int64_t classes() const override { return classes_; }
  LayerPtr head(std::size_t last_layer) const override {
    const bool classified = last_layer > static_cast<std::size_t>(blocks_);
    return classified ? linear(classes_, classes_) : classifier();
  }

  std::vector<std::int64_t> published_balance(int stages) const override {
    if (blocks_ == 3 && stages == 2) return {2, 3};
    if (blocks_ == 3 && stages == 4) return {1, 1, 1, 2};
    return {};
  }

 private:
  LayerPtr dense(std::int64_t in, std::int64_t out,
                 Activation activation = Activation::Identity) const {
    return linear(in, out, {.init_std = linear_std_, .activation = activation});
  }
  static LayerPtr plus_input(std::vector<NamedLayer> children) {
    return residual(sequence(std::move(children)), nullptr, Activation::Identity);
  }

  LayerPtr embeddings() const {
    return sum_of({{"", sequence({{"tokens", embedding(vocabulary_, width_)},
                                  {"linear", dense(width_, width_)}})},
                   {"positions", linear_of_positions(tokens_, width_, {.init_std = linear_std_})}});
  }

  LayerPtr block() const {
    LayerPtr attended = attention({{"query", dense(width_, width_)},
                                   {"key", dense(width_, width_)},
                                   {"value", dense(width_, width_)}},
                                  {"output", dense(width_, width_)}, heads_);
    LayerPtr first = plus_input({{"attention", attended}, {"dropout1", dropout(dropout_)}});
    return sequence({{"", plus_input({{"", first},
                                      {"norm1", layer_norm(width_)},
                                      {"linear1", dense(width_, feed_forward_, Activation::Relu)},
                                      {"linear2", dense(feed_forward_, width_)},
                                      {"dropout2", dropout(dropout_)}})},
                     {"norm2", layer_norm(width_)}});
  }

  LayerPtr classifier() const {
    return sequence({{"", average_over_tokens()}, {"", dense(width_, classes_)}});
  }

  std::int64_t vocabulary_, tokens_, width_, heads_, feed_forward_, blocks_, classes_;
  double dropout_, linear_std_;
};

PIPEWRIGHT_MODEL(transformer, Transformer, "SpecTrain's Transformer encoder for movie reviews.");

}  // namespace
}  // namespace pipewright
