// SPDX-License-Identifier: Apache-2.0
#include "core/translation/beam_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/nn/task.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();
constexpr double kLengthOffset = 5;

/// The search for a batch of sentences. Hypothesis b of sentence s is row s · beam + b of the
/// decoder's batch.
class BeamSearch {
 public:
  BeamSearch(const Translator& translator, const at::Tensor& sources, const BeamOptions& options)
      : translator_(translator),
        options_(options),
        results_(static_cast<std::size_t>(sources.size(0))),
        carried_(translator.decoder_layers()) {
    const std::int64_t sentences = sources.size(0), beam = options.beam;
    const at::Tensor start = at::full({sentences, 1}, kStartToken, sources.options());
    inputs_ = translator.encode(sources, start);
    inputs_.pop_back();
    for (at::Tensor& input : inputs_) input = input.repeat_interleave(beam, 0);
    history_ = start.repeat_interleave(beam, 0);
    sentences_ = at::arange(sentences, sources.options());
    scores_ = at::full({sentences, beam}, kImpossible, sources.options().dtype(at::kDouble));
    scores_.select(1, 0).fill_(0);  // all hypotheses are still equal, so only one counts
    lengths_ = at::ones({sentences, beam}, scores_.options());
    ended_ = at::zeros({sentences, beam}, sources.options().dtype(at::kBool));
  }

  Sentences run() {
    while (sentences_.size(0) > 0 && history_.size(1) < options_.max_length) {
      step();
      finish();
    }
    if (sentences_.size(0) > 0) keep(at::arange(sentences_.size(0), sentences_.options()), scores_);
    return std::move(results_);
  }

 private:
  /// Extends each hypothesis by every token and keeps the best of each sentence.
  void step() {
    Tensors inputs = inputs_;
    inputs.push_back(history_.narrow(1, history_.size(1) - 1, 1));
    const at::Tensor chances =
        at::log_softmax(translator_.decode(std::move(inputs), carried_).select(1, -1), -1)
            .to(at::kDouble);
    const std::int64_t sentences = sentences_.size(0), tokens = chances.size(1);
    at::Tensor end_only = at::full({tokens}, kImpossible, chances.options());
    end_only[kEndToken] = 0;
    const at::Tensor next =
        at::where(ended_.unsqueeze(2), end_only, chances.view({sentences, options_.beam, tokens}));
    const auto [best, index] = (scores_.unsqueeze(2) + next).flatten(1).topk(options_.beam, 1);
    count();
    const at::Tensor first = at::arange(sentences, index.options()).unsqueeze(1) * options_.beam;
    choose_rows((first + at::floor_divide(index, tokens)).flatten());
    const at::Tensor word = index.remainder(tokens);
    scores_ = best;
    ended_ = ended_ | word.eq(kEndToken);
    history_ = at::cat({history_, word.view({-1, 1})}, 1);
  }

  /// Adds the new token and its attention to length and coverage of hypotheses that have not ended.
  void count() {
    lengths_ = lengths_ + ended_.logical_not();
    for (const Carried& carried : carried_)
      if (carried.attention.defined()) {
        const at::Tensor more =
            carried.attention.to(at::kDouble).masked_fill(ended_.view({-1, 1}), 0);
        coverage_ = coverage_.defined() ? coverage_ + more : more;
      }
  }

  void choose_rows(const at::Tensor& rows) {
    const auto chosen = [&](const at::Tensor& of) { return of.index_select(0, rows); };
    for (Carried& carried : carried_)
      for (at::Tensor& tensor : carried.tensors) tensor = chosen(tensor);
    history_ = chosen(history_);
    if (coverage_.defined()) coverage_ = chosen(coverage_);
    const std::int64_t beam = options_.beam;
    lengths_ = chosen(lengths_.flatten()).view({-1, beam});
    ended_ = chosen(ended_.flatten()).view({-1, beam});
  }

  /// Removes sentences whose hypotheses have all ended.
  void finish() {
    const at::Tensor over = ended_.all(1);
    if (!over.any().item<bool>()) return;
    keep(over.nonzero().flatten(), normalized());
    const at::Tensor left = over.logical_not().nonzero().flatten();
    const at::Tensor beams = at::arange(options_.beam, left.options());
    const at::Tensor rows = (left.unsqueeze(1) * options_.beam + beams).flatten();
    choose_rows(rows);
    for (at::Tensor& input : inputs_) input = input.index_select(0, rows);
    scores_ = scores_.index_select(0, left);
    sentences_ = sentences_.index_select(0, left);
  }

  at::Tensor normalized() const {
    const at::Tensor length = (kLengthOffset + lengths_) / (kLengthOffset + 1);
    const at::Tensor score = scores_ / length.pow(options_.length_exponent);
    if (!coverage_.defined()) return score;
    const at::Tensor logs = coverage_.clamp_max(1).log().masked_fill(coverage_.le(0), 0);
    return score + options_.coverage_penalty * logs.sum(1).view_as(score);
  }

  /// Stores the best hypothesis of each of these sentences as its translation.
  void keep(const at::Tensor& which, const at::Tensor& scores) {
    const at::Tensor best = which * options_.beam + scores.index_select(0, which).argmax(1);
    const at::Tensor rows = history_.index_select(0, best).cpu();
    const at::Tensor places = sentences_.index_select(0, which).cpu();
    for (std::int64_t i = 0; i < rows.size(0); ++i) {
      const auto* const begin = rows.const_data_ptr<std::int64_t>() + i * rows.size(1);
      const auto* const end = std::find(begin, begin + rows.size(1), kEndToken);
      results_[static_cast<std::size_t>(places.const_data_ptr<std::int64_t>()[i])].assign(begin + 1,
                                                                                          end);
    }
  }

  const Translator& translator_;
  const BeamOptions& options_;
  Sentences results_;
  Tensors inputs_;        ///< inputs of the decoder without the target
  at::Tensor sentences_;  ///< [n]: unfinished sentences, as indices into results_
  at::Tensor scores_;     ///< [n, beam] float64
  at::Tensor lengths_;    ///< [n, beam] float64
  at::Tensor ended_;      ///< [n, beam]
  at::Tensor history_;    ///< [n · beam, tokens so far]
  at::Tensor coverage_;   ///< [n · beam, S] float64; undefined without attention
  std::vector<Carried> carried_;
};

}  // namespace

Translator::Translator(std::vector<LayerPtr> layers, std::size_t encoder_layers,
                       const TensorFile& weights, at::Device device)
    : encoder_layers_(encoder_layers), device_(device) {
  PIPEWRIGHT_CHECK(encoder_layers > 0 && encoder_layers < layers.size(), encoder_layers, " of ",
                   layers.size(), " layers encode");
  for (LayerPtr& layer : layers) {
    Network network{.layer = std::move(layer), .parameters = {}, .buffers = {}};
    const auto value = [&](const std::string& name) {
      const at::Tensor* const found = weights.find(parameter_name(*network.layer, name));
      PIPEWRIGHT_CHECK(found != nullptr, "no '", parameter_name(*network.layer, name), "'");
      return found->to(device);
    };
    for (const auto& spec : network.layer->parameters())
      network.parameters.push_back(value(spec.name));
    for (const auto& spec : network.layer->buffers()) network.buffers.push_back(value(spec.name));
    layers_.push_back(std::move(network));
  }
}

Tensors Translator::run(const Network& network, const Tensors& inputs) const {
  std::vector<at::Tensor> buffers = network.buffers;
  return network.layer->forward_all(inputs, network.parameters, buffers, {.training = false});
}

Tensors Translator::encode(const at::Tensor& sources, const at::Tensor& targets) const {
  Tensors x{sources, targets};
  for (std::size_t i = 0; i < encoder_layers_; ++i) x = run(layers_[i], x);
  return x;
}

at::Tensor Translator::decode(Tensors inputs, std::vector<Carried>& carried) const {
  for (std::size_t i = encoder_layers_; i < layers_.size(); ++i) {
    const Network& network = layers_[i];
    const auto* const incremental = dynamic_cast<const Incremental*>(network.layer.get());
    inputs = incremental != nullptr
                 ? incremental->go_on(inputs, network.parameters, carried[i - encoder_layers_])
                 : run(network, inputs);
  }
  return inputs[0];
}

Sentences Translator::translate(const at::Tensor& sources, const BeamOptions& options) const {
  const at::NoGradGuard no_grad;
  return BeamSearch(*this, sources.to(device_), options).run();
}

}  // namespace pipewright
