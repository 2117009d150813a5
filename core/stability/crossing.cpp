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
/// Crossings on the axis have been found already.
std::pair<std::ptrdiff_t, std::ptrdiff_t> sides(const Eigenvalues& values) {
  return {std::ranges::count_if(values, [](Point v) { return v.real() > 0 && v.imag() > 0; }),
          std::ranges::count_if(values, [](Point v) { return v.real() > 0 && v.imag() < 0; })};
}

/// An eigenvalue at both ends of an interval, on different sides of the real axis.
struct Crossing {
  Point begin, end;
  bool certain = false;  ///< no other one at the end is nearly as near
};

/// The eigenvalues that cross the positive axis if each goes to the nearest that is not taken. It
/// sees two that cross in opposite directions, which sides() does not, but may take one for
/// another.
std::vector<Crossing> crossings_to_the_nearest(const Eigenvalues& from, Eigenvalues to) {
  constexpr double kNearly = 2;
  std::vector<Crossing> found;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto farther = [&](Point a, Point b) {
      return std::abs(a - from[i]) < std::abs(b - from[i]);
    };
    const auto here = to.begin() + static_cast<std::ptrdiff_t>(i);
    std::iter_swap(here, std::min_element(here, to.end(), farther));
    const Point end = *here;
    if ((from[i].imag() > 0) == (end.imag() > 0) || (from[i].real() <= 0 && end.real() <= 0))
      continue;
    bool certain = true;
    for (std::size_t k = 0; k < to.size(); ++k)
      if (k != i && std::abs(to[k] - from[i]) < kNearly * std::abs(end - from[i])) certain = false;
    found.push_back({from[i], end, certain});
  }
  return found;
}

/// Looks for the largest eigenvalue that is real and positive somewhere on the circle.
class Search {
 public:
  /// `found` is such an eigenvalue that is known already, or 0.
  Search(const CircleGain& gain, double found) : gain_(gain), largest_(found) {}

  double largest_on(int delay, int fineness) {
    const std::vector<double> angles = pipewright::angles(delay, fineness);
    left_ = kMostSpots * static_cast<std::ptrdiff_t>(angles.size());
    turn_ = kTurn / fineness;
    between_ = std::pow(kBetween, 1.0 / fineness);
    Spot last = at(angles.front());
    for (const double angle : angles) {
      Spot next = at(angle);
      look_between(last, next, 0);
      last = std::move(next);
    }
    note_real(last, 1e-9);  // at π the gain is real
    return largest_;
  }

 private:
  /// How many times larger an eigenvalue may be between two angles of a grid than at them, and by
  /// how many radians it may turn on the coarsest grid, which means to turn it by 15 degrees.
  static constexpr double kBetween = 2, kTurn = 0.35;

  /// Eigenvalues where they may be larger than half of what has been found; crossings are looked
  /// for where they are.
  Spot at(double angle) {
    const Point z = std::polar(1.0, angle);
    Spot spot{.angle = angle, .norm = 0};
    if (gain_.is_below && gain_.is_below(z, largest_ / between_, turn_)) return spot;
    const SquareMatrix<Point> gain = gain_.at(z);
    spot.norm = norm_of(gain);
    if (between_ * spot.norm < largest_) return spot;
    --left_;
    if (gain_.progress) gain_.progress();
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
    if (!may_cross(begin, depth) || !may_cross(end, depth)) return;
    std::vector<Crossing> crossings = crossings_to_the_nearest(begin.values, end.values);
    const bool changes = sides(begin.values) != sides(end.values);
    if (!changes && (depth > kTrusting || crossings.empty())) return;
    std::erase_if(crossings, [&](const Crossing& each) {
      return between_ * std::max(std::abs(each.begin), std::abs(each.end)) < largest_;
    });
    const auto followed = [&](const Crossing& each) {
      const bool noted = each.begin.imag() == 0 || each.end.imag() == 0;
      return each.certain && (noted || follow(each, begin.angle, end.angle));
    };
    if (!crossings.empty() && std::ranges::all_of(crossings, followed)) return;
    const double middle = std::midpoint(begin.angle, end.angle);
    if (depth == kDeepest || left_ <= 0 || middle <= begin.angle || middle >= end.angle)
      return note_real(end, kRounding);
    const Spot between = at(middle);
    look_between(begin, between, depth + 1);
    look_between(between, end, depth + 1);
  }

  /// Whether some eigenvalue is large enough, and near enough to the positive axis to reach it
  /// within an interval of that depth: it turns by 15 degrees in one of depth 0, and where two
  /// meet, with the root of the interval.
  bool may_cross(const Spot& spot, int depth) const {
    const double wedge = 4 * 15 * std::numbers::pi / 180 * std::pow(2, -depth / 2.0);
    return std::ranges::any_of(spot.values, [&](Point each) {
      return between_ * std::abs(each) >= largest_ && std::abs(std::arg(each)) <= wedge &&
             each != 0.0;
    });
  }

  /// Follows one eigenvalue to where it is real, by false position (Illinois). False if it gets
  /// lost, as where another one is near.
  bool follow(Crossing ends, double low, double high) {
    constexpr int kSteps = 40;
    constexpr double kReal = 1e-13, kJump = 0.5;
    const double apart = std::abs(ends.end - ends.begin);
    double of_low = ends.begin.imag(), of_high = ends.end.imag();
    int side = 0;  // whose end stayed last
    for (int step = 0; step < kSteps; ++step) {
      const double angle = low - of_low * (high - low) / (of_high - of_low);
      if (!(angle > low && angle < high)) return false;
      const double part = (angle - low) / (high - low);
      const Point expected = ends.begin + part * (ends.end - ends.begin);
      if (gain_.progress) gain_.progress();
      const Point value = eigenvalue_near(gain_.at(std::polar(1.0, angle)), expected);
      if (value == expected || std::abs(value - expected) > kJump * apart) return false;
      if (std::abs(value.imag()) <= kReal * value.real()) {
        largest_ = std::max(largest_, value.real());
        return true;
      }
      if ((value.imag() > 0) == (ends.begin.imag() > 0)) {
        low = angle;
        ends.begin = value;
        of_low = value.imag();
        if (side == -1) of_high /= 2;
        side = -1;
      } else {
        high = angle;
        ends.end = value;
        of_high = value.imag();
        if (side == 1) of_low /= 2;
        side = 1;
      }
    }
    return false;
  }

  static constexpr std::ptrdiff_t kMostSpots = 60;  ///< for each of the grid: a bound on the search

  const CircleGain& gain_;
  double largest_ = 0, turn_ = 0, between_ = 0;
  std::ptrdiff_t left_ = 0;  ///< spots whose eigenvalues may still be computed
};

}  // namespace

double first_crossing(const CircleGain& gain, int delay) {
  constexpr int kFinest = 16;
  constexpr double kAgreement = 1e-10;
  double largest = Search(gain, 0).largest_on(delay, 1);
  for (int fineness = 2; fineness <= kFinest; fineness *= 2) {
    const double coarse = largest;
    largest = Search(gain, coarse).largest_on(delay, fineness);
    if (largest - coarse <= kAgreement * largest) break;
  }
  return largest > 0 ? 1 / largest : std::numeric_limits<double>::infinity();
}

}  // namespace pipewright
