// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/uniform_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/vectorised.h"

namespace pipewright {
namespace {

constexpr std::int32_t kAllButSign = 0x7fffffff;
constexpr std::int32_t kInfiniteBits = 0x7f800000;

/// Maps the bits of a float to an integer in the order of the floats. It is its own inverse.
constexpr std::int32_t ordered(std::int32_t bits) {
  return bits ^ ((bits >> 31) & kAllButSign);
}

struct LeastAndMost {
  std::int32_t least, most;
};

PIPEWRIGHT_VECTORISED LeastAndMost least_and_most(const float* x, std::size_t n,
                                                  LeastAndMost so_far) {
  std::int32_t least = so_far.least, most = so_far.most;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t key = ordered(std::bit_cast<std::int32_t>(x[i]));
    least = key < least ? key : least;
    most = key > most ? key : most;
  }
  return {least, most};
}

/// Adding it to a value of magnitude below 2^22 rounds the value to an integer, half to even.
constexpr float kRound = 0x1.8p23F;

/// The range of levels: the lowest and the highest code, relative to code `zero`.
struct Bounds {
  explicit Bounds(UniformGrid grid)
      : low(static_cast<float>(-grid.zero)), high(static_cast<float>(grid.top - grid.zero)) {}
  float low, high;
};

/// The divisor of values; infinity for a step of 0, so that all levels are 0.
float divisor(UniformLevels levels) {
  return levels.step > 0 ? levels.step : std::numeric_limits<float>::infinity();
}

/// x in steps from `base`, clamped to the bounds.
[[gnu::always_inline]] inline float level_of(float x, float base, float step, Bounds bounds) {
  const float v = (x - base) / step, raised = v > bounds.low ? v : bounds.low;
  return raised < bounds.high ? raised : bounds.high;
}

PIPEWRIGHT_VECTORISED void nearest_codes(const float* x, std::size_t n, float base, float step,
                                         Bounds bounds, std::int32_t zero, std::uint16_t* codes) {
  const std::int32_t none = std::bit_cast<std::int32_t>(kRound) - zero;
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) {
    const float v = level_of(x[i], base, step, bounds);
    codes[i] = static_cast<std::uint16_t>(std::bit_cast<std::int32_t>(v + kRound) - none);
  }
}

/// Stochastic rounding. It computes with the results of comparisons, as branches on random bits
/// would be mispredicted.
PIPEWRIGHT_VECTORISED void random_codes(const float* x, std::size_t n, float base, float step,
                                        Bounds bounds, std::int32_t zero, const float* noise,
                                        std::uint16_t* codes) {
  const std::int32_t none = std::bit_cast<std::int32_t>(kRound) - zero;
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) {
    const float v = level_of(x[i], base, step, bounds);
    const float shifted = v + kRound, nearest = shifted - kRound;
    const auto rounded_up = static_cast<std::int32_t>(nearest > v);
    const float lost = v - nearest + static_cast<float>(rounded_up);
    const auto up = static_cast<std::int32_t>(noise[i] < lost);
    codes[i] =
        static_cast<std::uint16_t>(std::bit_cast<std::int32_t>(shifted) - none - rounded_up + up);
  }
}

PIPEWRIGHT_VECTORISED void evenly_spaced(const std::uint16_t* codes, std::size_t n, float base,
                                         float step, std::int32_t zero, float* x) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(static_cast<std::int32_t>(codes[i]) - zero) * step + base;
}

}  // namespace

void ValueRange::include(std::span<const float> x) {
  const LeastAndMost now = least_and_most(x.data(), x.size(), {least_, most_});
  least_ = now.least;
  most_ = now.most;
}

bool ValueRange::finite() const {
  return most_ < least_ ||
         (most_ < kInfiniteBits && least_ > ordered(kInfiniteBits | ~kAllButSign));
}

float ValueRange::least() const {
  return most_ < least_ ? 0 : std::bit_cast<float>(ordered(least_)) + 0.0F;  // −0 becomes 0
}

float ValueRange::most() const {
  return most_ < least_ ? 0 : std::bit_cast<float>(ordered(most_)) + 0.0F;
}

void quantize(std::span<const float> x, UniformLevels levels, UniformGrid grid,
              std::span<std::uint16_t> codes) {
  nearest_codes(x.data(), x.size(), levels.base, divisor(levels), Bounds(grid), grid.zero,
                codes.data());
}

void quantize(std::span<const float> x, UniformLevels levels, UniformGrid grid,
              std::span<const float> noise, std::span<std::uint16_t> codes) {
  random_codes(x.data(), x.size(), levels.base, divisor(levels), Bounds(grid), grid.zero,
               noise.data(), codes.data());
}

void dequantize(std::span<const std::uint16_t> codes, UniformLevels levels, UniformGrid grid,
                std::span<float> x) {
  evenly_spaced(codes.data(), codes.size(), levels.base, levels.step, grid.zero, x.data());
}

}  // namespace pipewright
