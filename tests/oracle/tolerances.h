/// How near numbers must come in the oracle's tests, and why no nearer. All are float64.
#pragma once

namespace oracle::tolerance {

/// What n rounded operations, one after another or as a sum of n + 1 terms in any order, can be off
/// by, as a part of the result (of the sum of magnitudes): γ(n) = n·u / (1 − n·u) with u = 2⁻⁵³.
constexpr double rounded(double operations) {
  return operations * 0x1p-53 / (1 - operations * 0x1p-53);
}

/// A formula of a handful of operations on values of size 1, written in another order: 8.9e-16.
inline constexpr double kFewOperations = rounded(8);
/// The same of an optimizer's step and three predictions behind it: 8.9e-15.
inline constexpr double kSteps = rounded(80);
/// Two forms of one training: fourteen steps through seven layers and back, sums of at most nine
/// terms: 1e-13.
inline constexpr double kTrainings = rounded(14 * 7 * 9);
/// The program beside the oracle: sums of some 10² terms over some 10² layers and steps, and Adam's
/// first steps divide by √u near 0, which magnifies what is there a hundredfold: 1.1e-10, relative
/// to max(1, |x|).
inline constexpr double kAgreement = rounded(1e2 * 1e2 * 1e2);
/// What the smallest mistake in a version moves weights by, at least: far above all of the above.
inline constexpr double kNoticeable = 1e-7;

/// Slopes by central differences, (f(x + h) − f(x − h)) / 2h: the third derivative's h²/6 and the
/// rounding of values over h, with derivatives and values of at most 10 here: 2e-10 and 1.1e-10.
inline constexpr double kStep = 1e-5;
inline constexpr double kSlope = 10 * kStep * kStep / 6 + 10 * rounded(1) / kStep;

}  // namespace oracle::tolerance
