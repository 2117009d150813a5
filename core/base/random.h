// SPDX-License-Identifier: Apache-2.0
/// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011). A stream is a function
/// from (key, counter) to bits and has no state, so who draws, when and in which order changes
/// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pipewright {

/// Four 32-bit words of the block with this counter.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                    std::uint64_t counter_high);

/// FNV-1a; the same on every machine.
std::uint64_t stable_hash(std::string_view text);

/// A named stream: keyed by the run's seed, what it is for, and whatever else it must depend on.
/// Element `index` is a function of these and nothing else.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t a = 0,
               std::uint64_t b = 0);

  std::array<std::uint32_t, 4> block(std::uint64_t index) const;  ///< words of elements 4i..4i+3
  std::uint32_t bits(std::uint64_t index) const;
  double uniform(std::uint64_t index) const;  ///< in [0, 1), 53 random bits
  double normal(std::uint64_t index) const;   ///< mean 0, standard deviation 1 (Box–Muller)
  /// An integer in [0, n), unbiased enough for n < 2^32 (multiply-shift of 64 bits). Requires n >
  /// 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t n) const;

 private:
  std::uint64_t key_;
  std::uint64_t high_;
};

}  // namespace pipewright
