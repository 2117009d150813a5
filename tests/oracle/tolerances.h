// SPDX-License-Identifier: Apache-2.0
/// The tolerances of the oracle's tests, each with its derivation. All numbers are float64.
#pragma once

namespace oracle::tolerance {

/// Largest relative error of n rounded operations, one after another, or of a sum of n + 1 terms in
/// any order (relative to the sum of magnitudes): γ(n) = n·u / (1 − n·u) with u = 2⁻⁵³.
constexpr double rounded(double operations) {
  return operations * 0x1p-53 / (1 - operations * 0x1p-53);
}

/// Tolerance of a formula of few operations on values of size 1, written in another order: 8.9e-16.
inline constexpr double kFewOperations = rounded(8);
/// Tolerance of an optimizer's step and three predictions after it: 8.9e-15.
inline constexpr double kSteps = rounded(80);
/// Tolerance of two forms of one training, with fourteen steps through seven layers and back and
/// sums of at most nine terms: 1e-13.
inline constexpr double kTrainings = rounded(14 * 7 * 9);
/// Tolerance between program and oracle, relative to max(1, |x|): sums of some 10² terms over some
/// 10² layers and steps, and a factor of a hundred because Adam's first steps divide by √u near
/// 0: 1.1e-10.
inline constexpr double kAgreement = rounded(1e2 * 1e2 * 1e2);
/// Least change of weights by a mistake in a version, far above the tolerances.
inline constexpr double kNoticeable = 1e-7;

/// Tolerance of slopes by central differences, (f(x + h) − f(x − h)) / 2h: the third derivative's
/// h²/6 and the rounding of values over h, with derivatives and values of at most 10: 2e-10
/// and 1.1e-10.
inline constexpr double kStep = 1e-5;
inline constexpr double kSlope = 10 * kStep * kStep / 6 + 10 * rounded(1) / kStep;

}  // namespace oracle::tolerance
