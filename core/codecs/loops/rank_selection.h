// SPDX-License-Identifier: Apache-2.0
/// Finds the values at given ranks of an unsorted array, exactly and without sorting it.
///
/// A sample gives two edges between which the value at a rank almost surely lies. One pass over all
/// values counts those below each edge and collects those between two edges, a few percent, which
/// are then sorted. The counts prove the result; if they show that the sample was wrong, the whole
/// array is sorted. Values that occur often in the sample (zeros after a ReLU) get edges of their
/// own and are counted instead of collected.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codecs/loops/pieces.h"

namespace pipewright {

/// Maps floats to integers with the same order: −∞ < … < −0 < 0 < … < ∞, NaN at both ends. −0 has
/// the key −1.
constexpr std::int32_t key_of(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
/// The value of a key; for the key of −0 it is 0.
constexpr float value_of(std::int32_t key) {
  if (key == -1) return 0;
  return std::bit_cast<float>(key ^ ((key >> 31) & 0x7fffffff));
}

/// Sorts in place, ascending.
void sort_keys(std::vector<std::int32_t>& keys);

/// The linear congruential generator, modulo 2⁶⁴, whose states' high bits place a sample.
inline constexpr std::uint64_t kSampleSeed = 0x9e3779b97f4a7c15u,
                               kSampleFactor = 6364136223846793005u,
                               kSampleSummand = 1442695040888963407u;

/// Keys of a sample of at most `most` ≥ 1 values, ascending, with 0 for −0. The sample takes one
/// value, at an arbitrary but fixed place, from each of as many equal parts of the array.
std::vector<std::int32_t> sorted_sample(std::span<const float> values, std::int64_t most);

/// Least and greatest key of the values between two adjacent edges.
struct Extremes {
  std::int32_t least, most;  ///< least > most: no values
};
/// The extremes of the keys k < edges[0], edges[0] ≤ k < edges[1], …; edges must ascend.
std::vector<Extremes> extremes_between(std::span<const float> values,
                                       std::span<const std::int32_t> edges,
                                       const ForPieces& pieces);

/// The values at the given ranks (0 is the least), which must ascend; zeros are +0. If the input
/// has NaN or ±∞, the value at the first or at the last rank of the array is not finite, so
/// checking these two suffices.
std::vector<float> values_at_ranks(std::span<const float> values,
                                   std::span<const std::int64_t> ranks,
                                   const ForPieces& pieces = in_one_piece);

}  // namespace pipewright
