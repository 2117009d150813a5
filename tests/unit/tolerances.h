// SPDX-License-Identifier: Apache-2.0
/// All numerical tolerances of the unit tests, each with its derivation. Values that must be equal
/// to the bit are compared with == and are not listed here.
///
/// A derived tolerance is a number of rounded operations or of standard errors. "Measured" means
/// that no useful bound is known; the comment then gives the worst value seen and the margin added
/// to it.
#pragma once

#include <cmath>

namespace pipewright::tolerance {

// ---- Rounding ----

/// Unit roundoffs: the result of an operation that rounds to nearest is off by at most this part of
/// itself.
inline constexpr double kUnit32 = 0x1p-24, kUnit64 = 0x1p-53;
/// The least positive float32: below 2⁻¹²⁶ results are off by at most half of it, however small
/// they are.
inline constexpr double kDenormal32 = 0x1p-149;

/// γ(n) = n·u / (1 − n·u): what n rounded operations, one after another, can be off by, as a part
/// of the result. The same bounds a sum of n + 1 terms, added in any order, as a part of the sum of
/// their magnitudes, and a dot product of n terms likewise (Higham, Accuracy and Stability of
/// Numerical Algorithms, lemma 3.1, section 4.2). Two programs that compute the same in different
/// orders differ by twice as much at most; so do two orders of one program.
constexpr double rounded32(double operations) {
  return operations * kUnit32 / (1 - operations * kUnit32);
}
constexpr double rounded64(double operations) {
  return operations * kUnit64 / (1 - operations * kUnit64);
}

/// A decimal number with so many digits after the point is off by at most half a unit of the last
/// digit.
inline double written(int digits) {
  return 0.5 * std::pow(10.0, -digits);
}
/// As above for significant digits, relative to the number; 1.00… is the worst case.
inline double significant(int digits) {
  return 0.5 * std::pow(10.0, 1 - digits);
}

// ---- Chance ----

/// Estimates from random draws may be off by so many standard errors: one in 16,000 correct
/// programs is, at each comparison (normal distribution, both sides: 6.3e-5). Seeds are fixed, so a
/// test that passes goes on passing.
inline constexpr double kSigmas = 4;

/// Tolerance of a mean of n independent draws with that variance.
inline double mean_of(double n, double variance) {
  return kSigmas * std::sqrt(variance / n);
}
/// Tolerance of the share of n draws that have a property of probability p.
inline double share_of(double n, double p) {
  return mean_of(n, p * (1 - p));
}
/// Tolerance of the standard deviation of n normal draws, whose standard error is √(σ²/2n).
inline double deviation_of(double n, double deviation) {
  return mean_of(2 * n, deviation * deviation);
}

// ---- Layers, models, training in float64 ----

/// A layer against formulas of its own: sums of a few hundred to a thousand products, and a dozen
/// such sums behind one another, 10⁴ operations: 1.1e-12.
inline constexpr double kFloat64Relative = rounded64(10'000);
/// The same in float32: a sum of a few hundred products and a division by a deviation, 10³
/// operations: 6e-5.
inline constexpr double kFloat32Relative = rounded32(1'000);
/// A dozen updates of a small model, cut otherwise: gradients are sums of at most 10³ products
/// whose order depends on the cut, and an update moves weights of size 1 by less than 1: 12 · 10³
/// operations, 1.3e-12.
inline constexpr double kTrainedOtherwise = rounded64(12'000);
/// The same on another device, whose kernels add in another order: dot products of at most 1,200
/// terms in ten layers, forwards and backwards, in six updates; terms may be five times as large as
/// their sum. 8e-11.
inline constexpr double kTrainedElsewhere = rounded64(5.0 * 1'200 * 10 * 2 * 6);
/// Five steps of an optimizer are some ten operations each; Adam's first divides by √u near 0,
/// which magnifies what is there a hundredfold at most: 5.6e-13.
inline constexpr double kOptimizerSteps = rounded64(5 * 10 * 100);
/// Eigenvectors of four rows are off by 4 · 2⁻⁵³ over the gap between eigenvalues, which is at
/// least 10⁻³ of the largest here; seven steps divide by roots that are at least 10⁻² of the
/// largest: 3.1e-10.
inline constexpr double kEigenbasis = 4 * kUnit64 / 1e-3 * 7 / 1e-2;
/// A prediction is a step of twenty operations on values of size 4 or less: 8.9e-15.
inline constexpr double kPrediction = 4 * rounded64(20);
/// Sums of at most a hundred numbers: 1.1e-14 of their size. Statistics of a few values, metrics,
/// points of a curve.
inline constexpr double kHundredOperations = rounded64(100);
/// Where the spectral radius of a matrix of at most fifty rows is 1. Of a simple eigenvalue it is
/// off by about 50 · 2⁻⁵³ times its condition, for which 10³ stands, and it grows by at least 10⁻²
/// for each unit of the learning rate: 5.6e-10.
inline constexpr double kSpectralEdge = 50 * kUnit64 * 1e3 / 1e-2;
/// A handful of operations: 8.9e-16. Powers, ratios, a formula written in another order.
inline constexpr double kFewOperations = rounded64(8);
/// BLEU is 100 times the exponential of a mean of four logarithms, none above 5: forty operations
/// and the function calls among them, which are off by one unit in the last place. 4.4e-13.
inline constexpr double kBleu = 100 * rounded64(40);
/// A slope from values at ±h, h = 1e-5: the curvature adds h² = 1e-10 times the third derivative,
/// rounding adds 2⁻⁵³/h = 1.1e-11 times the value, which may be 10⁴ times the slope. Of the slope:
/// 1e-6.
inline constexpr double kDifferenceStep = 1e-5;
inline constexpr double kSlope = 1e-6;
/// Seconds of virtual time: a clock that is advanced so many times.
constexpr double seconds(double longest, double advances = 1'000) {
  return longest * rounded64(advances);
}

// ---- Layers in bfloat16, normwise, in roundings ----

/// A rounding to bfloat16's 8 bits of significand, relative.
inline constexpr double kUnitBfloat16 = 0x1p-8;
/// Products of two such numbers are exact in float32, which adds them up and rounds the sum once.
/// That sums of a few hundred terms are off in float32, by 10³ · 2⁻²⁴ of the sum of magnitudes,
/// which is ten times the sum at most, is 0.15 of a rounding.
inline constexpr double kRoundedOnce = 1.15;
/// Attention rounds queries, keys and values, scores or shares, their product with the values and
/// the projection, each by a rounding of the whole, and as often on the way back: ten. The gradient
/// of the keys' bias is a sum that is 0, of which only roundings are left. Measured with it: 12.5;
/// twice that.
inline constexpr double kRoundedAttention = 25;

/// A network of ten layers, there and back, each of which rounds once: sums in another order may
/// round to the neighbour. 0.08 of the norm.
inline constexpr double kOtherRoundings = 2 * 10 * kUnitBfloat16;

// ---- Codecs, in float32 ----

/// The mean magnitude is summed in float64 and rounded once: two sums in different orders round to
/// neighbours.
inline constexpr double kSignMean = rounded32(2);
/// With feedback the difference is remembered, beside a rounding of the remainder at each step:
/// three mini-batches.
inline constexpr double kSignRemembered = rounded32(3 * 4);

/// PowerSGD, with a matrix M of the gradients, a start Q and P = MQ: the best that is left of M
/// lies in the span of P's columns. Rounding turns that span by the relative error of P, γ(inner) ·
/// ‖M‖‖Q‖ / σ_least(P), for which `condition` stands (at least 1), and orthogonalisation by as
/// much; a projection of M moves by twice the turn times ‖M‖.
inline double projected32(double norm, double inner, double condition) {
  return 2 * 2 * rounded32(inner) * condition * norm;
}
/// A sum over steps that telescopes: per step so many roundings of numbers no larger than
/// `largest`.
inline double telescoped32(double steps, double operations, double largest) {
  return steps * operations * kUnit32 * largest;
}

/// A singular value decomposition is backward stable: an approximation is off by a small multiple
/// of u‖X‖, for which the larger extent times 8 stands.
constexpr double decomposed32(double extent, double norm) {
  return rounded32(8 * extent) * norm;
}

/// Power iteration amplifies rounding by the condition of what it orthonormalises, about which
/// nothing is known beforehand. Measured: 1.4e-7 of the matrix's norm; ten times that.
inline constexpr double kPowerIteration = 1.5e-6;
/// Rounds of power iteration come nearer by (σ₄/σ₃)² each; how near after sixty depends on the
/// spectrum. Measured: 7.6e-6 of the least distance; ten times that.
inline constexpr double kConverged = 8e-5;
/// Means of float32 values, summed in float64 and rounded once in each of at most six rounds, of
/// values that stay in their cluster: 9.5e-7 of the largest.
inline constexpr double kMeansOfRounds = rounded32(16);
/// Two computations of the best approximation of rank r of a matrix X. Each is that of X + E, where
/// ‖E‖ is a small multiple of u‖X‖ that grows as the root of the larger extent, for errors of dot
/// products have random signs: 8 times that root stands for it. In the basis of the singular
/// vectors, E moves the entries (i, j) and (j, i) of the approximation, i ≤ r < j, by the matrix
/// [σᵢ² σᵢσⱼ; σᵢσⱼ σᵢ²] / (σᵢ² − σⱼ²) times its own, whose norm σᵢ / (σᵢ − σⱼ) is greatest for
/// σᵣ, the last value that is kept, and σᵣ₊₁, the first that is dropped.
inline double truncated32(double extent, double norm, double kept, double dropped) {
  return 2 * rounded32(8 * std::sqrt(extent)) * norm * kept / (kept - dropped);
}
/// Power iteration on another device, from starts that each has kept itself for three mini-batches,
/// as a part of the approximation's norm. The condition of what is orthonormalised, up to a hundred
/// here, amplifies rounding. Measured on a CPU, in the sizes of the test: float32 beside float64
/// 4.1e-6; two devices twice that, and ten times as much for the conditions of other draws.
inline constexpr double kPowerIterationElsewhere = 10 * 2 * 4.1e-6;
/// Means of up to 2·10⁵/16 values of a cluster, added in float32 in any order: errors of random
/// sign grow as √n, 112 units.
inline constexpr double kMeansOnGpu = rounded32(160);
/// Six updates whose gradients passed through factors of enough rank, beside six without: rounding,
/// which the condition of random directions amplifies. Measured: 3.2e-8, half a unit of weights of
/// size 1; thirty times that.
inline constexpr double kTrainedWithEnoughRank = 1e-6;

// ---- Numbers of other programs ----

/// torchgpipe's sum of gradients has six digits behind the point.
inline const double kTorchgpipeSum = written(6);
/// Its norm of 4.5 million float32 values lost digits as it was added. Measured: 0.0974 of 1039;
/// twice that.
inline constexpr double kTorchgpipeNorm = 0.2;
/// Losses, norms and statistics that PyTorch computed in float64 stand here with ten digits at
/// least. The sums of both programs, in other orders behind up to a hundred layers, differ by less
/// than 1e-12 (measured) of that.
inline const double kTenDigits = significant(10);
/// Simpson's rule with 20,000 steps over smooth densities, whose own error is below 1e-12, beside
/// quantiles that Boost.Math finds to about 1e-14 and its root finder to 1e-12 of the effect.
inline constexpr double kIntegral = 1e-9;
/// The formula of a normal quantile is good to eight units in the last place, of the distribution
/// function to four; and a rounding of x by u|x| changes Φ by about u·x² of it.
inline double normal_quantile_of(double x) {
  return 16 * kUnit64 * std::abs(x);
}
/// A part of the probability.
inline double normal_cdf_of(double x) {
  return 8 * kUnit64 * (1 + x * x);
}
/// A variance of 1 beside a mean: every value is rounded once more on its way, by kUnit32 of the
/// mean, and the variance moves by twice that; twice the bound, for the mean moves as well.
constexpr double variance32(double mean) {
  return 2 * 2 * mean * kUnit32;
}

// ---- Chance and promises of single tests ----

/// The least of n uniform draws from an interval is farther from its end than this in one of 16,000
/// sets: e^(−n·d/range).
inline double extreme_of(double n, double range) {
  return range * std::log(16'000.0) / n;
}
/// The deviation of 40,000 actions whose lengths vary by a fifth, which are nearly normal.
inline const double kJitterDeviation = deviation_of(40'000, 0.2);
/// What probes compute in float64 against formulas: sums of at most a few hundred products, of
/// numbers of order 1, whose rounding is some 1e-13; quotients of small norms lose four digits.
inline constexpr double kProbes = 1e-8;
/// What the program promises of predicted memory: within ten percent.
inline constexpr double kPromisedMemory = 0.1;
/// And within a quarter where backwards are split, as measured.
inline constexpr double kPromisedMemoryOfHalves = 0.25;
/// The most of a small stage's memory that kernels need for themselves. It depends on the
/// processor: without AVX-512, oneDNN reorders the weights of layers of 8 channels into blocks of
/// 8 × 8 and needs a fifth of what such a ResNet-18 needs; with AVX-512 it needs less than a tenth.
inline constexpr double kKernelsOwnMemory = 0.25;

}  // namespace pipewright::tolerance
