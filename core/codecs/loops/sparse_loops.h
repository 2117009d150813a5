// SPDX-License-Identifier: Apache-2.0
/// The loops of `top_k`, without LibTorch: choosing values, and scattering received ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright {

/// A choice of values: those with a magnitude above `least`, and the first `ties` values that equal
/// it. Magnitudes are float32 bits without the sign, which order like absolute values.
struct Chosen {
  std::uint32_t least = 0;
  std::size_t ties = 0;
  bool finite = true;  ///< false: a value is not finite, and the other members are meaningless
};

/// Chooses the k largest magnitudes, 1 ≤ k ≤ x.size(), by counting in three passes (radix
/// selection).
Chosen choose_largest(std::span<const float> x, std::size_t k);

/// Writes the k chosen values and their positions, in ascending order of position.
void gather_chosen(std::span<const float> x, Chosen chosen, std::span<float> values,
                   std::span<std::uint32_t> positions);
/// Writes the k chosen values and a bit map of x with 1 for each chosen value.
void gather_chosen(std::span<const float> x, Chosen chosen, std::span<float> values,
                   std::span<std::byte> bits);

/// Scatters values into x, which must be zeros. Returns false if positions do not ascend or are out
/// of range.
bool scatter(std::span<const float> values, std::span<const std::uint32_t> positions,
             std::span<float> x);
/// Scatters values by a bit map. Returns false if the number of set bits differs from the number of
/// values, or a bit beyond x is set.
bool scatter(std::span<const float> values, std::span<const std::byte> bits, std::span<float> x);

}  // namespace pipewright
