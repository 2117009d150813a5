// SPDX-License-Identifier: Apache-2.0
// Stages of several weights: the Hessian has a block of rows for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/stability/symmetric_gain.h"
#include "tests/unit/stability/dynamics.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

Hessian product_of(const Hessian& a, const Hessian& b, bool transpose_a = false) {
  Hessian c(a.size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j)
      for (std::size_t k = 0; k < a.size(); ++k)
        c[i][j] += (transpose_a ? a[k][i] : a[i][k]) * b[k][j];
  return c;
}

/// BᵀB of a random B with so many rows: positive semidefinite of that rank.
Hessian random_hessian(std::size_t size, std::size_t rank, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Hessian b(size, std::vector<double>(size));
  for (std::size_t row = 0; row < rank; ++row)
    for (double& number : b[row]) number = normal(random);
  return product_of(b, b, true);
}

/// Rotates two rows and columns.
Hessian rotated(const Hessian& hessian, std::size_t a, std::size_t b, double angle) {
  Hessian rotation(hessian.size(), std::vector<double>(hessian.size()));
  for (std::size_t i = 0; i < hessian.size(); ++i) rotation[i][i] = 1;
  rotation[a][a] = rotation[b][b] = std::cos(angle);
  rotation[b][a] = std::sin(angle);
  rotation[a][b] = -std::sin(angle);
  return product_of(product_of(rotation, hessian, true), rotation);
}

/// Schemes of three stages with a delay and predicted steps of each stage's forward. Where `two` is
/// set, the backward reads the newest weights.
struct Walked {
  const char *name, *options;
  std::vector<int> delay, ahead;
  bool two = false;
};
const Walked kWalkedSchemes[] = {
    {"gpipe", "{}", {0, 0, 0}, {0, 0, 0}},
    {"pipedream", "{}", {2, 1, 0}, {0, 0, 0}},
    {"delayed_sgd", "{delay: 3}", {3, 3, 3}, {0, 0, 0}},
    {"spectrain", "{version: 2}", {2, 1, 0}, {2, 1, 0}},
    {"pipedream", "{weight_stashing: false}", {2, 1, 0}, {0, 0, 0}, true},
    {"pipeoptim", "{}", {2, 1, 0}, {2, 1, 0}, true},
};
const Blocks kBlocks{2, 1, 3};

/// Performs SGD with momentum weight by weight and returns by which factor the weights grow.
double growth(const Walked& scheme, const Hessian& hessian, double momentum, double delta,
              double lr) {
  constexpr int kSteps = 4000;
  const std::size_t size = hessian.size();
  std::vector<std::size_t> stage;
  for (std::size_t k = 0; k < kBlocks.size(); ++k)
    stage.insert(stage.end(), static_cast<std::size_t>(kBlocks[k]), k);
  std::vector<double> start, velocity(size);
  for (std::size_t i = 0; i < size; ++i) start.push_back(1 + 0.1 * static_cast<double>(i));
  std::vector<std::vector<double>> weights(6, start), steps(6, velocity);
  double half = 0, end = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> read(size), next(size);
    for (std::size_t j = 0; j < size; ++j) {
      const auto at = weights.size() - 1 - static_cast<std::size_t>(scheme.delay[stage[j]]);
      read[j] = weights[at][j] - scheme.ahead[stage[j]] * lr * steps[at][j];
    }
    for (std::size_t i = 0; i < size; ++i) {
      double gradient = 0;
      for (std::size_t j = 0; j < size; ++j) {
        gradient += hessian[i][j] * read[j];
        if (scheme.two && stage[i] == stage[j])
          gradient += delta * hessian[i][j] * (read[j] - weights.back()[j]);
      }
      velocity[i] = momentum * velocity[i] + gradient;
      next[i] = weights.back()[i] - lr * velocity[i];
    }
    weights.push_back(next);
    steps.push_back(velocity);
    double& most = step < kSteps / 2 ? half : end;
    if (step % (kSteps / 2) >= kSteps / 4)
      for (const double w : next) most = std::max(most, std::abs(w));
  }
  return end / half;
}

TEST(Blocks, HaveTheEdgeOfTheirWeightsPerformedOneByOne) {
  for (const Walked& scheme : kWalkedSchemes)
    for (const double momentum : {0.0, 0.8})
      for (const double delta : scheme.two ? std::vector{0.0, 0.7} : std::vector{0.0})
        for (const unsigned seed : {1U, 2U}) {
          const Hessian hessian = random_hessian(6, seed == 1 ? 6 : 3, seed);
          const Dynamics dynamics{.recurrence = recurrence_of(scheme.name, scheme.options, 3),
                                  .rule = momentum_rule(momentum),
                                  .discrepancy = delta};
          const double edge = coupled_edge(dynamics, hessian, kBlocks);
          EXPECT_LE(growth(scheme, hessian, momentum, delta, 0.99 * edge), 1.0 + 1e-9)
              << scheme.name << scheme.options << momentum << " " << delta << " " << seed;
          EXPECT_GT(growth(scheme, hessian, momentum, delta, 1.01 * edge), 1.05)
              << scheme.name << scheme.options << momentum << " " << delta << " " << seed;
        }
}

TEST(Blocks, ThatAreNotCoupledHaveTheSmallestOfTheirEdges) {
  const std::vector<double> curvatures{1, 6, 11, 3, 2, 40};  // of the blocks: 6, 11, 40
  Hessian hessian(6, std::vector<double>(6));
  for (std::size_t i = 0; i < 6; ++i) hessian[i][i] = curvatures[i];
  hessian = rotated(rotated(rotated(hessian, 0, 1, 0.4), 3, 4, 1.1), 4, 5, 0.7);
  for (const Walked& scheme : kWalkedSchemes) {
    const Dynamics dynamics{.recurrence = recurrence_of(scheme.name, scheme.options, 3),
                            .rule = momentum_rule(0.9),
                            .discrepancy = 0.5};
    const double least = std::min(
        {edge_alone(dynamics, 0) / 6, edge_alone(dynamics, 1) / 11, edge_alone(dynamics, 2) / 40});
    EXPECT_NEAR(coupled_edge(dynamics, hessian, kBlocks) / least, 1, tolerance::kSpectralEdge)
        << scheme.name << scheme.options;
  }
}

TEST(Blocks, MayBeRotatedInThemselves) {
  const Hessian hessian = random_hessian(6, 6, 3);
  for (const Walked& scheme : kWalkedSchemes) {
    const Dynamics dynamics{.recurrence = recurrence_of(scheme.name, scheme.options, 3),
                            .rule = momentum_rule(0.5),
                            .discrepancy = 1};
    const double edge = coupled_edge(dynamics, hessian, kBlocks);
    const Hessian other = rotated(rotated(hessian, 0, 1, 0.9), 3, 5, 2.1);
    EXPECT_NEAR(coupled_edge(dynamics, other, kBlocks) / edge, 1, tolerance::kSpectralEdge)
        << scheme.name << scheme.options;
    EXPECT_LT(spectral_radius(dynamics, other, edge * (1 - 1e-6), kBlocks), 1);
    EXPECT_GT(spectral_radius(dynamics, other, edge * (1 + 1e-6), kBlocks), 1);
  }
}

/// With Nesterov's 0.5 and a prediction of one step more than the delay, gains of some stages are
/// nearly real on the whole circle, so that eigenvalues lie along the axis.
TEST(Edges, OfRandomSingularHessiansAreFirstWhereGainsAreNearlyReal) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    const Hessian hessian = random_hessian(10, 7, seed);
    const Dynamics dynamics{.recurrence = recurrence_of("pipeoptim", "{s_offset: 1}", 10, 2),
                            .rule = nesterov_rule(0.5)};
    const double edge = coupled_edge(dynamics, hessian);
    EXPECT_GT(spectral_radius(dynamics, hessian, edge * (1 + 1e-4)), 1 + 1e-7) << seed;
    for (const double part : {0.02, 0.1, 0.3, 0.6, 0.9, 0.9999})
      EXPECT_LT(spectral_radius(dynamics, hessian, edge * part), 1 + 1e-7) << seed << " " << part;
  }
}

/// What leaves angles out of the search must never leave out an eigenvalue that counts.
TEST(SymmetricGains, AreBelowABoundOnlyIfTheirEigenvaluesAre) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  int said = 0;
  for (unsigned trial = 0; trial < 2000; ++trial) {
    const SymmetricGain gain(random_hessian(4, 1 + trial % 4, trial), {0, 1, 1, 2});
    std::vector<std::complex<double>> d;
    for (int k = 0; k < 3; ++k) d.emplace_back(normal(random), normal(random));
    const double bound = trial % 3 == 0 ? 0 : 10 * std::abs(normal(random));
    const double turn = trial % 2 == 0 ? 0.35 : 0.05;
    if (!gain.is_below(d, bound, turn)) continue;
    ++said;
    for (const std::complex<double>& value : eigenvalues(gain.at(d)))
      EXPECT_FALSE(std::abs(std::arg(value)) <= turn && std::abs(value) > bound * (1 + 1e-9) + 1e-9)
          << trial << ": " << value;
  }
  EXPECT_GT(said, 500);
}

TEST(Blocks, OfSixtyFourStagesNeedFewSetsOfEigenvalues) {
  constexpr std::size_t kStages = 64;
  Hessian hessian(kStages, std::vector<double>(kStages));
  for (std::size_t i = 0; i < kStages; ++i) {
    hessian[i][i] = 2;
    if (i > 0) hessian[i][i - 1] = hessian[i - 1][i] = 1;
  }
  const Dynamics dynamics{.recurrence = recurrence_of("pipedream", "{}", kStages),
                          .rule = momentum_rule(0.9)};
  int sets = 0;
  const double edge = coupled_edge(dynamics, hessian, {}, [&] { ++sets; });
  EXPECT_GT(edge, 0);
  EXPECT_LT(sets, 1000);
}

}  // namespace
}  // namespace pipewright
