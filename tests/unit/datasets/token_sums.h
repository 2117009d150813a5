// SPDX-License-Identifier: Apache-2.0
/// Sums that tell one data set of tokens from another.
#pragma once

#include "core/nn/dataset.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright::fixtures {

/// Sums over the tokens of the first samples of a split, which all have `width`.
struct TokenSums {
  std::int64_t lengths = 0, full = 0, by_place = 0, by_sample = 0;
  bool operator==(const TokenSums&) const = default;
};
inline TokenSums token_sums(const Dataset& data, Split split, std::int64_t samples,
                            std::int64_t width) {
  const at::Tensor x = data.batch(split, first_indices(samples), nullptr).x[0];
  const auto* token = x.const_data_ptr<std::int64_t>();
  TokenSums sums;
  for (std::int64_t i = 0; i < samples; ++i) {
    sums.lengths += data.length(split, i);
    sums.full += data.length(split, i) == width;
    for (std::int64_t j = 0; j < width; ++j, ++token) {
      sums.by_place += (j + 1) * *token;
      sums.by_sample += (i % 1000 + 1) * *token;
    }
  }
  return sums;
}

}  // namespace pipewright::fixtures
