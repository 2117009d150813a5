// SPDX-License-Identifier: Apache-2.0
/// The loops of `fp16`, `bf16`, `fp8` and `mx`, without LibTorch.
#pragma once

#include <cstdint>
#include <span>

#include "core/codecs/loops/small_float.h"

namespace pipewright {

/// Computes the codes of x·factor.
void small_codes(std::span<const float> x, float factor, SmallFloat format,
                 std::span<std::uint16_t> codes);
/// Computes the codes of x/divisor.
void divided_codes(std::span<const float> x, float divisor, SmallFloat format,
                   std::span<std::uint16_t> codes);

/// These three functions return whether all values were finite; if not, the codes are useless.
bool to_halves(std::span<const float> x, std::uint16_t* codes);
bool to_saturated_halves(std::span<const float> x, std::uint16_t* codes);
bool to_bfloat16(std::span<const float> x, std::uint16_t* codes);

}  // namespace pipewright
