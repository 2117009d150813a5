// SPDX-License-Identifier: Apache-2.0
/// Copies of float32 numbers in bfloat16: the sign, the 8 exponent bits and the first 7 mantissa
/// bits, rounded to nearest, ties to even. A NaN stays one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pipewright {

/// Writes the copies of n numbers.
void copy_to_bfloat16(const float* numbers, std::size_t n, std::uint16_t* copies);

}  // namespace pipewright
