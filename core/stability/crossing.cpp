// SPDX-License-Identifier: Apache-2.0
#include "core/stability/crossing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

namespace pipewright {
namespace {

using Point = std::complex<double>;
using Gain = std::function<SquareMatrix<Point>(Point)>;

constexpr double kLeastAngle = 1e-7;
constexpr double kNone = std::numeric_limits<double>::infinity();

/// Angles in (0, π], ascending: as many to each factor of two as to a turn of the phase by 15
/// degrees, both times `fineness`.
std::vector<double> angles(int delay, int fineness) {
  const double step = std::numbers::pi / (12.0 * (delay + 3) * fineness);
  const double ratio = std::pow(2.0, 1.0 / (6 * fineness));
  std::vector<double> all;
  double angle = kLeastAngle;
  while (angle < std::numbers::pi) {
    all.push_back(angle);
    angle = std::min(angle * ratio, angle + step);
  }
  all.push_back(std::numbers::pi);
  return all;
}

/// A part of the circle, with an eigenvalue at both ends.
struct Stretch {
  double begin = 0, end = 0;
  Point at_begin, at_end;
};

/// The eigenvalues `now`, ordered so that each is the nearest to that of the same index `before`.
void match(const Eigenvalues& before, Eigenvalues& now) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto nearest = std::min_element(
        now.begin() + static_cast<std::ptrdiff_t>(i), now.end(),
        [&](Point a, Point b) { return std::abs(a - before[i]) < std::abs(b - before[i]); });
    std::iter_swap(now.begin() + static_cast<std::ptrdiff_t>(i), nearest);
  }
}

/// Follows one eigenvalue to the angle at which it is real; 1 over its value, or kNone if it is not
/// positive, or if two eigenvalues were taken for one.
double crossing_in(const Gain& gain, Stretch stretch) {
  constexpr int kHalvings = 60;
  constexpr double kReal = 1e-7;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::midpoint(stretch.begin, stretch.end);
    const Point expected = (stretch.at_begin + stretch.at_end) / 2.0;
    const Eigenvalues all = eigenvalues(gain(std::polar(1.0, middle)));
    const Point found =
        *std::ranges::min_element(all, {}, [&](Point each) { return std::abs(each - expected); });
    const bool first_half = (found.imag() > 0) != (stretch.at_begin.imag() > 0);
    (first_half ? stretch.end : stretch.begin) = middle;
    (first_half ? stretch.at_end : stretch.at_begin) = found;
  }
  const Point found = stretch.at_end;
  if (found.real() <= 0 || std::abs(found.imag()) > kReal * found.real()) return kNone;
  return 1 / found.real();
}

double crossing_on_grid(const Gain& gain, int delay, int fineness) {
  double least = kNone;
  double last = 0;
  Eigenvalues before;
  for (const double angle : angles(delay, fineness)) {
    Eigenvalues now = eigenvalues(gain(std::polar(1.0, angle)));
    if (!before.empty()) match(before, now);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool changes = (before[i].imag() > 0) != (now[i].imag() > 0);
      const double largest = std::max(before[i].real(), now[i].real());
      if (changes && largest > 0 && 1 / largest < 2 * least)
        least = std::min(least, crossing_in(gain, {last, angle, before[i], now[i]}));
    }
    last = angle;
    before = std::move(now);
  }
  constexpr double kReal = 1e-9;  // at π the gain is real
  for (const Point& each : before)
    if (each.real() > 0 && std::abs(each.imag()) <= kReal * each.real())
      least = std::min(least, 1 / each.real());
  return least;
}

}  // namespace

double first_crossing(const Gain& gain, int delay) {
  constexpr int kFinest = 16;
  constexpr double kAgreement = 1e-10;
  double coarse = crossing_on_grid(gain, delay, 1);
  for (int fineness = 2; fineness <= kFinest; fineness *= 2) {
    const double fine = crossing_on_grid(gain, delay, fineness);
    if (fine == coarse || std::abs(fine - coarse) <= kAgreement * fine) return fine;
    coarse = std::min(coarse, fine);
  }
  return coarse;
}

}  // namespace pipewright
