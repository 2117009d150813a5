// SPDX-License-Identifier: Apache-2.0
/// Uniform quantization of runs of values and back, for `uniform` and `aq_sgd`. Without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace pipewright {

/// The grid of codes 0 to `top`, which decode to x' = base + (code − zero)·step.
struct UniformGrid {
  int top = 255;
  int zero = 0;
};

/// The levels of one group of values.
struct UniformLevels {
  float base = 0;
  float step = 0;  ///< 0: all values are equal and have the code `zero`
};

/// Collects the least and the largest of the values.
class ValueRange {
 public:
  void include(std::span<const float> x);
  bool finite() const;  ///< whether no value was infinite or NaN
  float least() const;  ///< 0 without values
  float most() const;

 private:
  // Order-preserving integers, whose minimum and maximum vectorise; non-finite values lie outside
  // the range of finite ones.
  std::int32_t least_ = std::numeric_limits<std::int32_t>::max();
  std::int32_t most_ = std::numeric_limits<std::int32_t>::min();
};

/// Rounds to the nearest level, ties to even. x and codes have the same length.
void quantize(std::span<const float> x, UniformLevels levels, UniformGrid grid,
              std::span<std::uint16_t> codes);
/// Rounds stochastically: with v = (x − base)/step, up if noise < v − floor(v), otherwise down.
/// `noise` has one value in [0, 1) for each x.
void quantize(std::span<const float> x, UniformLevels levels, UniformGrid grid,
              std::span<const float> noise, std::span<std::uint16_t> codes);
void dequantize(std::span<const std::uint16_t> codes, UniformLevels levels, UniformGrid grid,
                std::span<float> x);

}  // namespace pipewright
