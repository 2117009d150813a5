// SPDX-License-Identifier: Apache-2.0
/// A Transformer encoder (Vaswani et al., 2017) that classifies sequences of vectors: blocks equal
/// to torch.nn.TransformerEncoderLayer with its defaults, the mean over the tokens, one linear
/// layer. It has no embedding and no positions, because its tokens are vectors. Parameters have the
/// names of a torch.nn.TransformerEncoder, as "layers.<i>.self_attn.in_proj_weight", then
/// "classifier.weight".
#include <string>
#include <utility>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

class Encoder final : public Model {
 public:
  explicit Encoder(Options& options)
      : blocks_(options.integer("layers", 6, "Number of encoder blocks.", {1, 1e4})),
        width_(options.integer("width", 256, "Width of the model: numbers per token.", {1, 1e6})),
        heads_(options.integer("heads", 4,
                               "Number of attention heads of each block, a divisor of the width.",
                               {1, 1e6})),
        feed_forward_(options.integer(
            "feed_forward", 1024,
            "Width between the two linear layers of a block's feed-forward part.", {1, 1e7})),
        tokens_(options.integer("tokens", 128, "Number of tokens per sample.", {1, 1e6})),
        classes_(options.integer("classes", 10, "Number of classes.", {1, 1e9})),
        dropout_(options.number(
            "dropout", 0.1, "Dropout probability at each of a block's four places.", {0, 0.99})),
        norm_first_(options.flag("norm_first", false,
                                 "Whether layer norm comes before attention and feed-forward "
                                 "instead of after their sums.")) {
    if (width_ % heads_ == 0) return;
    options.problem("heads", concat("is ", heads_, "; expected a divisor of the width, ", width_));
    heads_ = 1;
  }

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    for (std::int64_t i = 0; i < blocks_; ++i) {
      all.push_back(norm_first_ ? block_normed_before() : block_normed_after());
      all.back()->set_name(concat("layers.", i));
    }
    all.push_back(classifier());
    all.back()->set_name("classifier");
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return {tokens_, width_}; }
  std::int64_t classes() const override { return classes_; }
  LayerPtr head(std::size_t last_layer) const override {
    const bool classified = last_layer >= static_cast<std::size_t>(blocks_);
    return classified ? linear(classes_, classes_) : classifier();
  }

 private:
  using Parts = std::vector<std::pair<std::string, LayerPtr>>;

  static LayerPtr plus_input(Parts parts) {
    return residual(sequence(std::move(parts)), nullptr, Activation::Identity);
  }
  LayerPtr attention() const { return self_attention(width_, heads_, dropout_); }
  LayerPtr widen() const { return linear(width_, feed_forward_, {.activation = Activation::Relu}); }
  LayerPtr narrow() const { return linear(feed_forward_, width_); }

  LayerPtr block_normed_after() const {
    return sequence(
        {{"", plus_input({{"self_attn", attention()}, {"dropout1", dropout(dropout_)}})},
         {"norm1", layer_norm(width_)},
         {"", plus_input({{"linear1", widen()},
                          {"dropout", dropout(dropout_)},
                          {"linear2", narrow()},
                          {"dropout2", dropout(dropout_)}})},
         {"norm2", layer_norm(width_)}});
  }

  LayerPtr block_normed_before() const {
    return sequence({{"", plus_input({{"norm1", layer_norm(width_)},
                                      {"self_attn", attention()},
                                      {"dropout1", dropout(dropout_)}})},
                     {"", plus_input({{"norm2", layer_norm(width_)},
                                      {"linear1", widen()},
                                      {"dropout", dropout(dropout_)},
                                      {"linear2", narrow()},
                                      {"dropout2", dropout(dropout_)}})}});
  }

  LayerPtr classifier() const {
    return sequence({{"", average_over_tokens()}, {"", linear(width_, classes_)}});
  }

  std::int64_t blocks_, width_, heads_, feed_forward_, tokens_, classes_;
  double dropout_;
  bool norm_first_;
};

PIPEWRIGHT_MODEL(encoder, Encoder, "Transformer encoder over sequences of vectors, a classifier.");

}  // namespace
}  // namespace pipewright
