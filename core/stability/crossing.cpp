// SPDX-License-Identifier: Apache-2.0
#include "core/stability/crossing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace pipewright {
namespace {

using Point = std::complex<double>;
using Gain = std::function<SquareMatrix<Point>(Point)>;

constexpr double kLeastAngle = 1e-7;

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

/// An angle with the eigenvalues of the gain there, of which those within its rounding are 0.
struct Spot {
  double angle = 0;
  double norm = 0;  ///< no eigenvalue is larger
  Eigenvalues values;
};

/// The largest sum of a row's magnitudes.
double norm_of(const SquareMatrix<Point>& matrix) {
  double norm = 0;
  for (int r = 0; r < matrix.size; ++r) {
    double sum = 0;
    for (int c = 0; c < matrix.size; ++c) sum += std::abs(matrix.at(r, c));
    norm = std::max(norm, sum);
  }
  return norm;
}

/// Takes what rounding has added from the eigenvalues: those of a singular gain that should be 0,
/// and imaginary parts of real ones, would otherwise change sides at random from angle to angle.
/// Equal zeros are off by up to the root of the rounding of a number. Where larger ones cross the
/// axis, and some always do, so small ones decide nothing.
void round_off(Eigenvalues& values, double norm) {
  constexpr double kZero = 1e-9, kReal = 1e-13;
  for (Point& each : values) {
    if (std::abs(each) <= kZero * norm) each = 0;
    if (std::abs(each.imag()) <= kReal * norm) each.imag(0);
  }
}

/// The number of eigenvalues with a positive real part that are above the real axis, and below it.
/// Those on the axis have been found already.
std::pair<std::ptrdiff_t, std::ptrdiff_t> sides(const Eigenvalues& values) {
  return {std::ranges::count_if(values, [](Point v) { return v.real() > 0 && v.imag() > 0; }),
          std::ranges::count_if(values, [](Point v) { return v.real() > 0 && v.imag() < 0; })};
}

/// Whether an eigenvalue crosses the axis if each goes to the nearest that is not taken. It sees
/// two that cross in opposite directions, which sides() does not, but may take one for another.
bool crosses_to_the_nearest(const Eigenvalues& from, Eigenvalues to) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto here = to.begin() + static_cast<std::ptrdiff_t>(i);
    std::iter_swap(here, std::min_element(here, to.end(), [&](Point a, Point b) {
                     return std::abs(a - from[i]) < std::abs(b - from[i]);
                   }));
    if ((from[i].imag() > 0) != (to[i].imag() > 0)) return true;
  }
  return false;
}

double largest_real(const Eigenvalues& values) {
  double largest = 0;
  for (const Point& each : values) largest = std::max(largest, each.real());
  return largest;
}

/// Looks for the largest eigenvalue that is real and positive somewhere on the circle.
class Search {
 public:
  explicit Search(const Gain& gain) : gain_(gain) {}

  double first_crossing(const std::vector<double>& angles) {
    left_ = kMostSpots * static_cast<std::ptrdiff_t>(angles.size());
    Spot last = at(angles.front());
    for (const double angle : angles) {
      Spot next = at(angle);
      look_between(last, next, 0);
      last = std::move(next);
    }
    note_real(last, 1e-9);  // at π the gain is real
    return largest_ > 0 ? 1 / largest_ : std::numeric_limits<double>::infinity();
  }

 private:
  /// Eigenvalues where they may be larger than half of what has been found; crossings are looked
  /// for where they are.
  Spot at(double angle) {
    const SquareMatrix<Point> gain = gain_(std::polar(1.0, angle));
    Spot spot{.angle = angle, .norm = norm_of(gain), .values = {}};
    if (2 * spot.norm < largest_) return spot;
    --left_;
    spot.values = eigenvalues(gain);
    round_off(spot.values, spot.norm);
    note_real(spot, 0);
    return spot;
  }

  void note_real(const Spot& spot, double rounding) {
    for (const Point& each : spot.values)
      if (each.real() > 0 && std::abs(each.imag()) <= rounding * each.real())
        largest_ = std::max(largest_, each.real());
  }

  void look_between(const Spot& begin, const Spot& end, int depth) {
    constexpr int kTrusting = 5, kDeepest = 52;
    constexpr double kRounding = 1e-7;
    if (begin.values.empty() || end.values.empty()) return;  // smaller than what has been found
    const bool changes = sides(begin.values) != sides(end.values);
    if (!changes && (depth > kTrusting || !crosses_to_the_nearest(begin.values, end.values)))
      return;
    if (2 * std::max(largest_real(begin.values), largest_real(end.values)) < largest_) return;
    const double middle = std::midpoint(begin.angle, end.angle);
    if (depth == kDeepest || left_ <= 0 || middle <= begin.angle || middle >= end.angle)
      return note_real(end, kRounding);
    const Spot between = at(middle);
    look_between(begin, between, depth + 1);
    look_between(between, end, depth + 1);
  }

  static constexpr std::ptrdiff_t kMostSpots = 60;  ///< for each of the grid: a bound on the search

  const Gain& gain_;
  double largest_ = 0;
  std::ptrdiff_t left_ = 0;  ///< spots whose eigenvalues may still be computed
};

}  // namespace

double first_crossing(const Gain& gain, int delay) {
  constexpr int kFinest = 16;
  constexpr double kAgreement = 1e-10;
  double coarse = Search(gain).first_crossing(angles(delay, 1));
  for (int fineness = 2; fineness <= kFinest; fineness *= 2) {
    const double fine = Search(gain).first_crossing(angles(delay, fineness));
    if (fine == coarse || std::abs(fine - coarse) <= kAgreement * fine) return fine;
    coarse = std::min(coarse, fine);
  }
  return coarse;
}

}  // namespace pipewright
