/// Uniform quantization of runs of values, and back: the loops of `uniform`, without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace pipewright {

/// Codes 0 to `top`; x' = base + (code − zero)·step.
struct UniformGrid {
  int top = 255;
  int zero = 0;
};

/// Of one group of values.
struct UniformLevels {
  float base = 0;
  float step = 0;  ///< 0: all values are alike, code `zero` stands for them
};

/// The least and the largest of some values.
class ValueRange {
 public:
  void include(std::span<const float> x);
  bool finite() const;  ///< no value was infinite or not a number
  float least() const;  ///< 0 of nothing
  float most() const;

 private:
  // Order-preserving integers: their least and largest are found eight at a time, and what is not
  // finite lies outside of what is.
  std::int32_t least_ = std::numeric_limits<std::int32_t>::max();
  std::int32_t most_ = std::numeric_limits<std::int32_t>::min();
};

/// To the nearest level, ties to even. x and codes have one length.
void quantize(std::span<const float> x, UniformLevels levels, UniformGrid grid,
              std::span<std::uint16_t> codes);
/// Up with the probability of the part that is lost by going down: floor(v + u). noise: of as many
/// values, in [0, 1); below that part means up.
void quantize(std::span<const float> x, UniformLevels levels, UniformGrid grid,
              std::span<const float> noise, std::span<std::uint16_t> codes);
void dequantize(std::span<const std::uint16_t> codes, UniformLevels levels, UniformGrid grid,
                std::span<float> x);

}  // namespace pipewright
