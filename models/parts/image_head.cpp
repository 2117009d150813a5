// SPDX-License-Identifier: Apache-2.0
#include "models/parts/image_head.h"

#include <utility>

#include "core/base/parsed.h"
#include "core/base/text.h"
#include "core/nn/layers.h"

namespace pipewright {
namespace {

/// The N of "convN"; 0 if the word is not of that form.
std::int64_t convolution_channels(std::string_view word) {
  constexpr std::string_view kPrefix = "conv";
  if (!word.starts_with(kPrefix)) return 0;
  const auto channels = parsed<std::int64_t>(word.substr(kPrefix.size()));
  return channels && *channels <= 1 << 20 ? *channels : 0;
}

}  // namespace

ImageHead::ImageHead(Options& options, const std::string& fallback) {
  const std::string text = options.text(
      "aux_head", fallback,
      "Auxiliary head of a stage that has a loss of its own: words joined by '_', each of them "
      "convN (3x3 convolution to N channels, ReLU), bn (batch norm, ReLU), gbpl (global average "
      "pool) or fc (linear layer to the classes).");
  std::string problem;
  words_ = parsed(text, problem);
  if (problem.empty()) return;
  options.problem("aux_head", problem);
  words_ = parsed(fallback, problem);
}

std::vector<ImageHead::Word> ImageHead::parsed(const std::string& text, std::string& problem) {
  std::vector<Word> words;
  const auto wrong = [&](const std::string& what) {
    problem = concat("is '", text, "', in which ", what);
    return std::vector<Word>{};
  };
  bool pooled = false, ended = false;
  for (const std::string& word : split(text, '_')) {
    if (ended) return wrong("a word follows 'fc'; expected it at the end");
    if (const std::int64_t channels = convolution_channels(word); channels > 0) {
      if (pooled) return wrong("'" + word + "' follows 'gbpl'; expected it before");
      words.push_back({Word::Kind::Convolution, channels});
    } else if (word == "bn") {
      if (pooled) return wrong("'bn' follows 'gbpl'; expected it before");
      words.push_back({Word::Kind::BatchNorm});
    } else if (word == "gbpl") {
      if (pooled) return wrong("'gbpl' comes twice; expected it once");
      words.push_back({Word::Kind::Pool});
      pooled = true;
    } else if (word == "fc") {
      if (!pooled) return wrong("'fc' comes before 'gbpl'; expected it after");
      words.push_back({Word::Kind::Linear});
      ended = true;
    } else {
      return wrong(
          "'" + word +
          "' is no word of a head; expected convN (N a number of channels), bn, gbpl or fc");
    }
  }
  return ended ? words : wrong("the end is missing; expected 'gbpl_fc'");
}

LayerPtr ImageHead::on_image(std::int64_t channels, std::int64_t classes) const {
  std::vector<std::pair<std::string, LayerPtr>> parts;
  int convolutions = 0, norms = 0;
  const auto relu = [] { return activation(Activation::Relu, /*in_place=*/true); };
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const bool norm_follows = i + 1 < words_.size() && words_[i + 1].kind == Word::Kind::BatchNorm;
    switch (words_[i].kind) {
      case Word::Kind::Convolution:
        parts.emplace_back(
            concat("conv", ++convolutions),
            convolution(channels, words_[i].channels, {.padding = 1, .uniform_bias = true}));
        channels = words_[i].channels;
        if (!norm_follows) parts.emplace_back("", relu());
        break;
      case Word::Kind::BatchNorm:
        parts.emplace_back(concat("bn", ++norms), batch_norm(channels));
        if (!norm_follows) parts.emplace_back("", relu());
        break;
      case Word::Kind::Pool:
        parts.emplace_back("", average_pool_to(1));
        parts.emplace_back("", flatten());
        break;
      case Word::Kind::Linear: parts.emplace_back("fc", linear(channels, classes)); break;
    }
  }
  return sequence(std::move(parts));
}

LayerPtr ImageHead::on_features(std::int64_t features, std::int64_t classes) {
  return sequence({{"fc", linear(features, classes)}});
}

}  // namespace pipewright
