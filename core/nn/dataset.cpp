// SPDX-License-Identifier: Apache-2.0
#include "core/nn/dataset.h"

#include "core/base/text.h"

namespace pipewright {

std::string Dataset::text(std::span<const std::int64_t> tokens) const {
  std::vector<std::string> words;
  for (const std::int64_t token : tokens) words.push_back(std::to_string(token));
  return join(words, " ");
}

std::string Dataset::reference(Split split, std::int64_t index) const {
  const at::Tensor targets = batch(split, {&index, 1}, nullptr).y.contiguous();
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < targets.numel(); ++i)
    if (const std::int64_t token = targets.const_data_ptr<std::int64_t>()[i];
        token != kNoTarget && token != kEndToken)
      tokens.push_back(token);
  return text(tokens);
}

std::string unused_class_remark(std::int64_t least, std::int64_t most) {
  if (least < 1) return {};
  return concat("labels are ", least, " to ", most,
                ", and classes count from 0: no sample is of a class below ", least, ", but ",
                most + 1, " are counted; subtract ", least, " if labels count from ", least);
}

}  // namespace pipewright
