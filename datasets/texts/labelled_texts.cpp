// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/labelled_texts.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {

void LabelledTexts::append(std::span<const std::int32_t> text, std::uint8_t label) {
  texts.append(text);
  labels.push_back(label);
}

std::int64_t LabelledTextDataset::length(Split split, std::int64_t index) const {
  return static_cast<std::int64_t>(texts(split).texts[index].size());
}

Batch LabelledTextDataset::batch(Split split, std::span<const std::int64_t> indices,
                                 const RandomStream*) const {
  const LabelledTexts& from = texts(split);
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{{at::empty({count, look_.tokens}, at::kLong)}, at::empty({count}, at::kLong)};
  auto* x = batch.x[0].mutable_data_ptr<std::int64_t>();
  auto* y = batch.y.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) {
    const std::span<const std::int32_t> text = from.texts[index];
    const std::int64_t* const end = x + look_.tokens;
    PIPEWRIGHT_CHECK(static_cast<std::int64_t>(text.size()) <= look_.tokens, text.size());
    x = std::ranges::copy(text, x).out;
    x = std::fill_n(x, end - x, look_.padding);
    *y++ = from.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

}  // namespace pipewright
