// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/low_rank.h"

#include <algorithm>

#include "core/codecs/payload.h"
#include "core/tensors/torch.h"

namespace pipewright {

LowRank LowRank::of_last_dimensions(at::IntArrayRef sizes, std::int64_t most_rank) {
  LowRank found;
  found.values = c10::multiply_integers(sizes);
  if (found.values == 0 || sizes.size() < 2) return found;
  found.a = sizes[sizes.size() - 2];
  found.b = sizes[sizes.size() - 1];
  found.count = found.values / found.a / found.b;
  found.choose_rank(most_rank);
  return found;
}

LowRank LowRank::of_samples(at::IntArrayRef sizes, std::int64_t most_rank) {
  LowRank found;
  found.values = c10::multiply_integers(sizes);
  if (found.values == 0 || sizes.size() < 3) return found;
  found.count = sizes[0];
  found.a = sizes[1];
  found.b = found.values / found.count / found.a;
  found.choose_rank(most_rank);
  return found;
}

void LowRank::choose_rank(std::int64_t most) {
  const std::int64_t wanted = std::min({most, a, b});
  rank = (a + b) * wanted < a * b ? wanted : 0;
}

std::int64_t LowRank::bytes() const {
  return 4 * (as_it_is() ? values : count * (a + b) * rank);
}

at::Tensor LowRank::values_of(const at::Tensor& payload) const {
  return floats_of(payload, 0, values);
}

at::Tensor LowRank::left_of(const at::Tensor& payload) const {
  return floats_of(payload, 0, count * a * rank).view({count, a, rank});
}

at::Tensor LowRank::right_of(const at::Tensor& payload) const {
  return floats_of(payload, 4 * count * a * rank, count * b * rank);
}

}  // namespace pipewright
