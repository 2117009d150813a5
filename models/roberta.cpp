// SPDX-License-Identifier: Apache-2.0
/// RoBERTa (Liu et al., 2019) as a classifier of texts: 124,647,170 parameters in the base size
/// with two classes, as fine-tuned in work on compressed pipelines. It has post-norm blocks, exact
/// GELU and no pooler; the classifier reads token 0.
///
/// No token attends to padding. The embeddings push a mask, bool [batch, tokens], at which all
/// blocks peek and which the head pops; it has no gradient.
///
/// Parameters have the shapes of those in Hugging Face's RobertaForSequenceClassification; only the
/// beginnings of the names differ:
///   embeddings.… = roberta.embeddings.…, layer.<i>.… = roberta.encoder.layer.<i>.…,
///   head.… = classifier.…
#include <string>
#include <vector>

#include "core/base/wording.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

constexpr double kRobertaInitStd = 0.02, kRobertaEps = 1e-5;

LayerPtr dense(std::int64_t in, std::int64_t out, Activation activation = Activation::Identity) {
  return linear(in, out, {.init_std = kRobertaInitStd, .activation = activation});
}

LayerPtr embedded(std::int64_t rows, std::int64_t width, std::int64_t zero_row = -1) {
  return embedding(rows, width, {.init_std = kRobertaInitStd, .zero_row = zero_row});
}

class Roberta final : public Model {
 public:
  explicit Roberta(Options& options)
      : vocabulary_(options.integer("vocabulary", 50'265, "Number of different tokens.", {2, 1e9})),
        tokens_(options.integer("tokens", 128, "Largest number of tokens in a sample.", {1, 1e6})),
        positions_(options.integer("positions", 514,
                                   "Number of rows of the position table; a sample begins with the "
                                   "row after the padding's.",
                                   {2, 1e6})),
        padding_(
            options.integer("padding", 1, "Token with which short samples are padded.", {0, 1e6})),
        width_(options.integer("width", 768, "Width of the model: numbers per token.", {1, 1e6})),
        heads_(options.integer("heads", 12,
                               "Number of attention heads of each layer, a divisor of the width.",
                               {1, 1e6})),
        feed_forward_(options.integer(
            "feed_forward", 3072,
            "Width between the two linear layers of an encoder layer's feed-forward part.",
            {1, 1e7})),
        layers_(options.integer("layers", 12, "Number of encoder layers.", {1, 1e4})),
        classes_(options.integer("classes", 2, "Number of classes.", {1, 1e9})),
        dropout_(options.number("dropout", 0.1,
                                "Dropout probability of embeddings, of attention, of both parts of "
                                "a layer, and twice in the head.",
                                {0, 0.99})) {
    if (width_ % heads_ != 0) {
      options.problem("heads",
                      concat("is ", heads_, "; expected a divisor of the width, ", width_));
      heads_ = 1;
    }
    if (padding_ >= vocabulary_) {
      options.problem(
          "padding",
          concat("is ", padding_, "; expected a token of the vocabulary, 0 to ", vocabulary_ - 1));
      padding_ = 0;
    }
    if (padding_ + tokens_ >= positions_) {
      options.problem("positions",
                      concat("is ", positions_, "; expected at least ", padding_ + tokens_ + 1,
                             ", which are those up to the padding's and one for each of ",
                             counted(tokens_, "token")));
      positions_ = padding_ + tokens_ + 1;
    }
  }

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all{embeddings()};
    all.back()->set_name("embeddings");
    for (std::int64_t i = 0; i < layers_; ++i) {
      all.push_back(layer());
      all.back()->set_name(concat("layer.", i));
    }
    all.push_back(classifier());
    all.back()->set_name("head");
    return all;
  }

  std::int64_t vocabulary() const override { return vocabulary_; }
  std::vector<std::int64_t> input_shape() const override { return {tokens_}; }
  std::int64_t classes() const override { return classes_; }
  LayerPtr head(std::size_t last_layer) const override {
    const bool classified = last_layer > static_cast<std::size_t>(layers_);
    return classified ? linear(classes_, classes_) : classifier();
  }

  /// Published cuts in which one worker has the first two and the last two layers; the others form
  /// one stage, or three.
  std::vector<std::int64_t> published_balance(int stages) const override {
    if (layers_ == 12 && stages == 3) return {2, 10, 2};
    if (layers_ == 12 && stages == 5) return {2, 4, 4, 2, 2};
    return {};
  }

 private:
  static LayerPtr plus_input(std::vector<NamedLayer> children) {
    return residual(sequence(std::move(children)), nullptr, Activation::Identity);
  }
  LayerPtr norm() const { return layer_norm(width_, kRobertaEps); }

  LayerPtr embeddings() const {
    LayerPtr position = sequence(
        {{"", positions_of_words(padding_)}, {"", embedded(positions_, width_, padding_)}});
    LayerPtr type = sequence({{"", token_types()}, {"", embedded(1, width_)}});
    return sequence({{"", mask_padding(padding_)},
                     {"", sum_of({{"word_embeddings", embedded(vocabulary_, width_, padding_)},
                                  {"token_type_embeddings", type},
                                  {"position_embeddings", position}})},
                     {"LayerNorm", norm()},
                     {"dropout", dropout(dropout_)}});
  }

  LayerPtr layer() const {
    LayerPtr attended = attention({{"self.query", dense(width_, width_)},
                                   {"self.key", dense(width_, width_)},
                                   {"self.value", dense(width_, width_)}},
                                  {"output.dense", dense(width_, width_)}, heads_,
                                  {.dropout = dropout_, .masked = true});
    return sequence(
        {{"", plus_input({{"attention", attended}, {"dropout1", dropout(dropout_)}})},
         {"attention.output.LayerNorm", norm()},
         {"", plus_input({{"intermediate.dense", dense(width_, feed_forward_, Activation::Gelu)},
                          {"output.dense", dense(feed_forward_, width_)},
                          {"dropout2", dropout(dropout_)}})},
         {"output.LayerNorm", norm()}});
  }

  LayerPtr classifier() const {
    return sequence({{"", first_token(1)},
                     {"dropout", dropout(dropout_)},
                     {"dense", dense(width_, width_, Activation::Tanh)},
                     {"dropout2", dropout(dropout_)},
                     {"out_proj", dense(width_, classes_)}});
  }

  std::int64_t vocabulary_, tokens_, positions_, padding_, width_, heads_, feed_forward_, layers_,
      classes_;
  double dropout_;
};

PIPEWRIGHT_MODEL(roberta, Roberta, "RoBERTa with a classifier on its first token.");

}  // namespace
}  // namespace pipewright
