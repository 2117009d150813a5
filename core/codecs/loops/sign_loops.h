// SPDX-License-Identifier: Apache-2.0
/// The loops of `sign`, without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright {

/// Σ|x|, added in float64 in a fixed order. Not finite if a value is not.
double sum_of_magnitudes(std::span<const float> x);
/// Codes are 1 for values below 0, otherwise 0.
void sign_codes(std::span<const float> x, std::span<std::uint16_t> codes);
/// Values are −scale for code 1 and scale for code 0.
void sign_values(std::span<const std::uint16_t> codes, float scale, std::span<float> x);

}  // namespace pipewright
