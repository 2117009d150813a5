/// Random numbers for stochastic rounding, many at a time, without LibTorch.
#pragma once

#include <cstdint>
#include <span>

namespace pipewright {

/// Values i = first, first + 1, … of one stream, in [0, 1) with 24 bits: word i % 4 of
/// philox(key, i / 4, high), whoever asks for how many.
void uniform_noise(std::uint64_t key, std::uint64_t high, std::uint64_t first,
                   std::span<float> noise);

}  // namespace pipewright
