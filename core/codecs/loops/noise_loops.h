// SPDX-License-Identifier: Apache-2.0
/// Vectorised random numbers for stochastic rounding, without LibTorch.
#pragma once

#include <cstdint>
#include <span>

namespace pipewright {

/// Fills in values i = first, first + 1, … of a stream, in [0, 1) with 24 bits. Value i comes from
/// word i % 4 of philox(key, i / 4, high), independent of how the calls cut the stream.
void uniform_noise(std::uint64_t key, std::uint64_t high, std::uint64_t first,
                   std::span<float> noise);

}  // namespace pipewright
