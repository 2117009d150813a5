// SPDX-License-Identifier: Apache-2.0
/// The residual LSTM of the SpecTrain code, which classifies texts with a fixed number of tokens:
/// embedding; blocks x + linear(LSTM(x)); mean over all tokens, padding included; linear. In the
/// published cuts into 2 and 4 stages each stage has one or two blocks.
#include <string>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/model.h"

namespace pipewright {
namespace {

constexpr double kLstmLinearStd = 0.01;

class ResidualLstm final : public Model {
 public:
  explicit ResidualLstm(Options& options)
      : vocabulary_(options.integer("vocabulary", 10'000, "Number of different tokens.", {2, 1e9})),
        tokens_(options.integer("tokens", 200, "Largest number of tokens in a sample.", {1, 1e6})),
        width_(options.integer("width", 128,
                               "Width of the model: numbers per token, in and between blocks.",
                               {1, 1e6})),
        blocks_(options.integer(
            "blocks", 4, "Number of residual blocks, each an LSTM and a linear layer.", {1, 1e4})),
        classes_(options.integer("classes", 2, "Number of classes.", {1, 1e9})) {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all{embedding(vocabulary_, width_)};
    all.back()->set_name("embedding");
    for (std::int64_t i = 1; i <= blocks_; ++i) {
      all.push_back(residual(sequence({{"lstm", lstm(width_, width_)},
                                       {"linear", linear(width_, width_, {kLstmLinearStd})}}),
                             nullptr, Activation::Identity));
      all.back()->set_name(concat("block", i));
    }
    all.push_back(classifier());
    all.back()->set_name("classifier");
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return {tokens_}; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t classes() const override { return classes_; }

  LayerPtr head(std::size_t last_layer) const override {
    const bool classified = last_layer > static_cast<std::size_t>(blocks_);
    return classified ? linear(classes_, classes_, {kLstmLinearStd}) : classifier();
  }

  std::vector<std::int64_t> published_balance(int stages) const override {
    if (blocks_ != 4) return {};
    if (stages == 2) return {3, 3};
    if (stages == 4) return {2, 1, 1, 2};
    return {};
  }

 private:
  LayerPtr classifier() const {
    return sequence(
        {{"", average_over_tokens()}, {"", linear(width_, classes_, {kLstmLinearStd})}});
  }

  std::int64_t vocabulary_, tokens_, width_, blocks_, classes_;
};

PIPEWRIGHT_MODEL(residual_lstm, ResidualLstm, "LSTM blocks with skip connections over a text.");

}  // namespace
}  // namespace pipewright
