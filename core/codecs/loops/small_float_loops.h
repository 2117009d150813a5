/// The loops of `fp16`, `bf16`, `fp8` and `mx`, without LibTorch.
#pragma once

#include <cstdint>
#include <span>

#include "core/codecs/loops/small_float.h"

namespace pipewright {

/// Codes of x·factor.
void small_codes(std::span<const float> x, float factor, SmallFloat format,
                 std::span<std::uint16_t> codes);
/// Codes of x/divisor.
void divided_codes(std::span<const float> x, float divisor, SmallFloat format,
                   std::span<std::uint16_t> codes);

/// All three return whether all values were finite; else codes hold nothing of use.
bool to_halves(std::span<const float> x, std::uint16_t* codes);
bool to_saturated_halves(std::span<const float> x, std::uint16_t* codes);
bool to_bfloat16(std::span<const float> x, std::uint16_t* codes);

}  // namespace pipewright
