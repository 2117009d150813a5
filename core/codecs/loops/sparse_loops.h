/// The loops of `top_k`, without LibTorch: choosing, and putting back what others sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright {

/// What is chosen: all magnitudes above that of `least`, and the first `ties` that equal it.
/// Magnitudes are float32's bits without the sign, which have the values' order.
struct Chosen {
  std::uint32_t least = 0;
  std::size_t ties = 0;
  bool finite = true;  ///< all values are; else the rest says nothing
};

/// The k largest magnitudes, 1 ≤ k ≤ x.size(): three passes that count, none that sorts.
Chosen choose_largest(std::span<const float> x, std::size_t k);

/// Writes the values chosen and their positions, both ascending by position: k of each.
void gather_chosen(std::span<const float> x, Chosen chosen, std::span<float> values,
                   std::span<std::uint32_t> positions);
/// The same with one bit a value for whether it was chosen.
void gather_chosen(std::span<const float> x, Chosen chosen, std::span<float> values,
                   std::span<std::byte> bits);

/// Into x, which is zeros. False where positions do not ascend or lie outside.
bool scatter(std::span<const float> values, std::span<const std::uint32_t> positions,
             std::span<float> x);
/// False where not as many bits are set as there are values, or one after the last value.
bool scatter(std::span<const float> values, std::span<const std::byte> bits, std::span<float> x);

}  // namespace pipewright
