/// The values at given ranks of an unsorted array, exactly, without sorting it.
///
/// A sample says between which two values the one at a rank almost surely lies. One pass over all
/// values counts those below each such edge and collects those between; the collected, a few
/// percent, are sorted. The counts prove the result; where they show that the sample was wrong,
/// everything is sorted after all. Values that the sample has often (zeros after a ReLU) get edges
/// of their own and are counted instead of collected.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codecs/loops/pieces.h"

namespace pipewright {

/// Integers in the order of floats: −∞ < … < −0 < 0 < … < ∞, NaN at both ends. −0 has the key −1.
constexpr std::int32_t key_of(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
/// Of −0's key it is 0.
constexpr float value_of(std::int32_t key) {
  if (key == -1) return 0;
  return std::bit_cast<float>(key ^ ((key >> 31) & 0x7fffffff));
}

/// In place, ascending.
void sort_keys(std::vector<std::int32_t>& keys);

/// Keys, ascending and with 0 for −0, of at most `most` values spread evenly over all of them, one
/// at an arbitrary but fixed place of each part. `most` ≥ 1.
std::vector<std::int32_t> sorted_sample(std::span<const float> values, std::int64_t most);

/// Least and greatest of the values that fall between neighbouring edges.
struct Extremes {
  std::int32_t least, most;  ///< least > most: there is none
};
/// Of the keys k < edges[0], edges[0] ≤ k < edges[1], …; edges ascending.
std::vector<Extremes> extremes_between(std::span<const float> values,
                                       std::span<const std::int32_t> edges,
                                       const ForPieces& pieces);

/// The values at these ranks (0 is the least), which ascend; zeros are +0. Where a value is not
/// finite, that at rank 0 or that at the last is not.
std::vector<float> values_at_ranks(std::span<const float> values,
                                   std::span<const std::int64_t> ranks,
                                   const ForPieces& pieces = in_one_piece);

}  // namespace pipewright
