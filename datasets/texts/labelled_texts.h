// SPDX-License-Identifier: Apache-2.0
/// Data sets of texts with one class each. Texts are kept as tokens in memory and padded batch by
/// batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/nn/dataset.h"
#include "datasets/texts/token_lists.h"

namespace pipewright {

/// The texts of one split.
struct LabelledTexts {
  TokenLists texts;
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return texts.size(); }
  void append(std::span<const std::int32_t> text, std::uint8_t label);
};

/// The base of such data sets, which add options and an open() that fills look_, train_ and test_.
/// A batch is x {[n, tokens]}, padded at the end, and y [n].
class LabelledTextDataset : public Dataset {
 public:
  std::int64_t size(Split split) const final { return texts(split).size(); }
  std::vector<std::int64_t> sample_shape() const final { return {look_.tokens}; }
  std::int64_t classes() const final { return look_.classes; }
  std::int64_t vocabulary() const final { return look_.vocabulary; }
  SampleForm form(Task /*targets*/) const final {
    return {.shape = sample_shape(), .classes = look_.classes, .vocabulary = look_.vocabulary};
  }
  std::int64_t length(Split split, std::int64_t index) const final;
  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream* augmentation) const final;

 protected:
  struct Look {
    std::int64_t tokens = 0;  ///< length of each sample; no text is longer
    std::int64_t classes = 0;
    std::int64_t vocabulary = 0;
    std::int32_t padding = 0;  ///< token that pads samples
  };

  Look look_;
  LabelledTexts train_, test_;

 private:
  const LabelledTexts& texts(Split split) const { return split == Split::Train ? train_ : test_; }
};

}  // namespace pipewright
