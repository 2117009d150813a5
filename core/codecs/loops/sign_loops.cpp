// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/sign_loops.h"

#include <array>
#include <cmath>

#include "core/base/vectorised.h"

namespace pipewright {
namespace {

constexpr std::size_t kSums = 8;

PIPEWRIGHT_VECTORISED void add_magnitudes(const float* x, std::size_t n, double* lanes) {
  double sums[kSums] = {};
  for (std::size_t i = 0; i + kSums <= n; i += kSums)
    for (std::size_t lane = 0; lane < kSums; ++lane)
      sums[lane] += static_cast<double>(std::fabs(x[i + lane]));
  for (std::size_t lane = 0; lane < kSums; ++lane) lanes[lane] = sums[lane];
}

PIPEWRIGHT_VECTORISED void codes_of(const float* x, std::size_t n, std::uint16_t* codes) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) codes[i] = x[i] < 0 ? 1 : 0;
}

PIPEWRIGHT_VECTORISED void signed_values(const std::uint16_t* codes, std::size_t n, float scale,
                                         float* x) {
  PIPEWRIGHT_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(1 - 2 * static_cast<std::int32_t>(codes[i])) * scale;
}

}  // namespace

double sum_of_magnitudes(std::span<const float> x) {
  std::array<double, kSums> lanes{};
  add_magnitudes(x.data(), x.size(), lanes.data());
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::size_t i = x.size() / kSums * kSums; i < x.size(); ++i)
    sum += static_cast<double>(std::fabs(x[i]));
  return sum;
}

void sign_codes(std::span<const float> x, std::span<std::uint16_t> codes) {
  codes_of(x.data(), x.size(), codes.data());
}

void sign_values(std::span<const std::uint16_t> codes, float scale, std::span<float> x) {
  signed_values(codes.data(), codes.size(), scale, x.data());
}

}  // namespace pipewright
