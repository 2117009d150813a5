/// The loops of `sign`, without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright {

/// In float64 and always in the same order; not finite where a value is not.
double sum_of_magnitudes(std::span<const float> x);
/// 1 below 0, else 0.
void sign_codes(std::span<const float> x, std::span<std::uint16_t> codes);
/// −scale for 1, scale for 0.
void sign_values(std::span<const std::uint16_t> codes, float scale, std::span<float> x);

}  // namespace pipewright
