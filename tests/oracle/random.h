// SPDX-License-Identifier: Apache-2.0
/// Seeded random numbers for cases, samples and initial weights, the same on every platform.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace oracle {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// A uniform integer in [low, high].
  int integer(int low, int high) {
    const auto span = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<int>(engine_() % span);
  }

  /// A uniform number in [low, high).
  double real(double low, double high) {
    constexpr double kUnit = 0x1p-53;
    return low + (high - low) * kUnit * static_cast<double>(engine_() >> 11);
  }

  /// True with probability 1 / `times`.
  bool once_in(int times) { return integer(1, times) == 1; }

  template <typename T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(integer(0, static_cast<int>(choices.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace oracle
