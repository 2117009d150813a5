// SPDX-License-Identifier: Apache-2.0
/// GNMT (Wu et al., 2016) as the PipeDream and PipeOptim codes train it: L LSTM layers each in
/// encoder and decoder, one attention over the source for all target positions at once, no input
/// feeding, no shared weights.
///
///   encoder.embedding   {source [n, S], target [n, T]} → {x [n, S, w], lengths [n], target}
///   encoder.lstm1       both directions; x [n, S, 2w], 0 beyond a sample's length
///   encoder.lstm2…L     LSTM(dropout(x)), from 3 on + x: {x [n, S, w], lengths, target}
///   decoder.embedding   {y [n, T, w], memory [n, S, w], lengths}
///   decoder.lstm1       {LSTM(y), memory, lengths}
///   decoder.attention   {y [n, T, w], context [n, T, w]}: see additive_attention()
///   decoder.lstm2…L     {LSTM(dropout(y), context), context}, from 3 on + y; L gives {y} alone
///   classifier          {scores [n, T, vocabulary]}
///
/// Tokens: 0 padding, 1 unknown, 2 start, 3 end. The published stages send both x and dropout(x);
/// here each layer applies dropout to its own input, so only x is sent, with the same results.
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/incremental.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Maps {source [n, S], target [n, T]} to {embedded source [n, S, width], lengths [n], target}. A
/// length is the number of tokens that are not padding (0); padding comes last. The padding's
/// embedding starts at 0 and has no gradient.
class SourceEmbedding final : public Composite {
 public:
  SourceEmbedding(std::int64_t vocabulary, std::int64_t width) {
    add(embedding(vocabulary, width, {.zero_row = kPaddingToken}), "");
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(inputs.size() == 2, "layer '", name(), "' takes source and target");
    return {parts_[0].forward(inputs[0], parameters, buffers, pass),
            inputs[0].ne(kPaddingToken).sum(1), inputs[1]};
  }
};

/// Maps {memory [n, S, ·], lengths [n], target [n, T]} to {embedded target [n, T, width], memory,
/// lengths}.
class TargetEmbedding final : public Composite {
 public:
  TargetEmbedding(std::int64_t vocabulary, std::int64_t width) {
    add(embedding(vocabulary, width, {.zero_row = kPaddingToken}), "");
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(inputs.size() == 3, "layer '", name(), "' takes memory, lengths and target");
    return {parts_[0].forward(inputs[2], parameters, buffers, pass), inputs[0], inputs[1]};
  }
};

struct ContextLstmOptions {
  double dropout = 0;          ///< dropout probability of x
  bool residual = false;       ///< adds x, before dropout, to the output
  bool drops_context = false;  ///< the output has no context: no later layer reads it
};

/// Maps {x [n, T, width], context [n, T, width]} to {LSTM(dropout(x), context), context}.
class ContextLstm final : public Composite, public Incremental {
 public:
  ContextLstm(std::int64_t width, ContextLstmOptions options) : options_(options) {
    add(dropout(options.dropout), "", ".dropout");
    add(lstm(2 * width, width), "");
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor dropped = parts_[0].forward(inputs[0], parameters, buffers, pass);
    return outputs(inputs,
                   parts_[1].forward(at::cat({dropped, inputs[1]}, 2), parameters, buffers, pass));
  }

  Tensors go_on(const Tensors& inputs, std::span<const at::Tensor> parameters,
                Carried& carried) const override {
    const auto& recurrent = dynamic_cast<const Incremental&>(*parts_[1].layer);
    return outputs(inputs,
                   recurrent.go_on({at::cat({inputs[0], inputs[1]}, 2)}, parameters, carried)[0]);
  }

 private:
  Tensors outputs(const Tensors& inputs, const at::Tensor& y) const {
    const at::Tensor sum = options_.residual ? y + inputs[0] : y;
    return options_.drops_context ? Tensors{sum} : Tensors{sum, inputs[1]};
  }

  ContextLstmOptions options_;
};

class Gnmt : public Model {
 public:
  Gnmt(Options& options, std::int64_t layers_per_side)
      : depth_(layers_per_side),
        vocabulary_(options.integer(
            "vocabulary", 32'320,
            "Number of tokens of each language, the four special ones included.", {5, 1e9})),
        width_(options.integer("width", 1024,
                               "Width of the model: numbers per token between layers.", {1, 1e6})),
        tokens_(options.integer(
            "tokens", 50, "Largest number of tokens in a source or target sentence.", {1, 1e6})),
        dropout_(options.number("dropout", 0.2,
                                "Dropout probability at the input of each LSTM layer but the first "
                                "of the encoder and of the decoder.",
                                {0, 0.99})) {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    const auto add = [&](LayerPtr layer, std::string name) {
      layer->set_name(std::move(name));
      all.push_back(std::move(layer));
    };
    add(std::make_shared<SourceEmbedding>(vocabulary_, width_), "encoder.embedding");
    add(bidirectional_lstm(width_, width_), "encoder.lstm1");
    for (std::int64_t i = 2; i <= depth_; ++i) add(encoder_lstm(i), concat("encoder.lstm", i));
    add(std::make_shared<TargetEmbedding>(vocabulary_, width_), "decoder.embedding");
    add(lstm(width_, width_), "decoder.lstm1");
    add(additive_attention(width_), "decoder.attention");
    for (std::int64_t i = 2; i <= depth_; ++i)
      add(std::make_shared<ContextLstm>(width_, ContextLstmOptions{.dropout = dropout_,
                                                                   .residual = i > 2,
                                                                   .drops_context = i == depth_}),
          concat("decoder.lstm", i));
    add(linear(width_, vocabulary_), "classifier");
    return all;
  }

  std::vector<std::int64_t> input_shape() const override { return {tokens_}; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t classes() const override { return vocabulary_; }
  Task task() const override { return Task::Translate; }
  std::size_t encoder_layers() const override { return static_cast<std::size_t>(1 + depth_); }

  /// The encoder has no heads, because its outputs do not correspond to target positions.
  LayerPtr head(std::size_t last_layer) const override {
    if (last_layer < encoder_layers()) return nullptr;
    const auto classifier = static_cast<std::size_t>(3 + 2 * depth_);
    return linear(last_layer == classifier ? vocabulary_ : width_, vocabulary_);
  }

  std::vector<std::int64_t> published_balance(int stages) const override {
    struct Cut {
      std::int64_t depth;
      std::vector<std::int64_t> balance;
    };
    static const std::vector<Cut> cuts{{4, {3, 5, 2, 2}},
                                       {4, {1, 1, 1, 1, 1, 3, 1, 1, 1, 1}},
                                       {8, {6, 7, 4, 3}},
                                       {8, {3, 4, 5, 2, 2, 2, 1, 1}}};
    for (const Cut& cut : cuts)
      if (cut.depth == depth_ && std::ssize(cut.balance) == stages) return cut.balance;
    return {};
  }

 private:
  LayerPtr encoder_lstm(std::int64_t i) const {
    LayerPtr body = sequence(
        {{"dropout", dropout(dropout_)}, {"", lstm(i == 2 ? 2 * width_ : width_, width_)}});
    return i == 2 ? body : residual(std::move(body), nullptr, Activation::Identity);
  }

  std::int64_t depth_, vocabulary_, width_, tokens_;
  double dropout_;
};

class Gnmt8 final : public Gnmt {
 public:
  explicit Gnmt8(Options& options) : Gnmt(options, 4) {}
};

class Gnmt16 final : public Gnmt {
 public:
  explicit Gnmt16(Options& options) : Gnmt(options, 8) {}
};

PIPEWRIGHT_MODEL(gnmt8, Gnmt8, "GNMT translation with 4 + 4 LSTM layers and attention.");
PIPEWRIGHT_MODEL(gnmt16, Gnmt16, "GNMT translation with 8 + 8 LSTM layers and attention.");

}  // namespace
}  // namespace pipewright
