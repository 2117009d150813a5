// SPDX-License-Identifier: Apache-2.0
// Identities between edges, and closed forms against the eigenvalues of a period.
#include <gtest/gtest.h>

#include <cmath>

#include "core/stability/crossing.h"
#include "core/stability/edges.h"
#include "tests/unit/stability/dynamics.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// The spectral radius of one stage with curvature 1.
double radius(const Dynamics& dynamics, double lr) {
  return spectral_radius(dynamics, {{1}}, lr);
}

/// The largest lr below which the spectral radius is at most 1, by halving an interval that the
/// radius of 1 is in. It knows nothing of circles and crossings.
double edge_by_halving(const Dynamics& dynamics, double below) {
  constexpr int kHalvings = 45;
  constexpr double kRounding = 1e-13;
  double low = 0, high = below;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (radius(dynamics, middle) <= 1 + kRounding ? low : high) = middle;
  }
  return low;
}

TEST(Edges, InClosedFormAreWhereTheSpectralRadiusIsOne) {
  for (const int delay : {0, 1, 2, 3, 5, 8})
    for (const double momentum : {0.0, 0.3, 0.5, 0.9, 0.97}) {
      const double edge = heavy_ball_edge(delay, momentum);
      EXPECT_NEAR(edge_by_halving(delayed(delay, momentum_rule(momentum)), 2 * edge), edge,
                  tolerance::kSpectralEdge)
          << delay << ", " << momentum;
    }
}

TEST(Edges, InClosedFormAreThoseThatTheCircleShows) {
  for (const int delay : {0, 1, 3, 7, 40})
    for (const double momentum : {0.0, 0.5, 0.9, 0.99}) {
      const Dynamics dynamics = delayed(delay, momentum_rule(momentum));
      const ClosedLoop loop(dynamics.recurrence, dynamics.rule, {0}, {{1}}, {});
      const double edge = heavy_ball_edge(delay, momentum);
      EXPECT_NEAR(first_crossing({.at = [&](std::complex<double> z) { return loop.gain(z); }},
                                 loop.longest_delay()),
                  edge, tolerance::kSpectralEdge * edge)
          << delay << ", " << momentum;
    }
}

TEST(Edges, OfPredictionsAreWhereTheSpectralRadiusIsOne) {
  for (const char* velocity : {"buffer", "lookahead", "geometric"})
    for (const char* version : {"1", "2"}) {
      const Recurrence recurrence = recurrence_of(
          "spectrain", concat("{version: ", version, ", velocity: ", velocity, "}"), 5);
      const Recurrence first{.stages = {recurrence.stages[0]}, .rules = recurrence.rules};
      Dynamics dynamics{.recurrence = first, .rule = momentum_rule(0.9)};
      for (GradientTerm& term : dynamics.recurrence.stages[0][0].terms) term.forward.resize(1);
      const double edge = edge_alone(dynamics, 0);
      EXPECT_LT(radius(dynamics, edge * (1 - 1e-6)), 1) << velocity << version;
      EXPECT_GT(radius(dynamics, edge * (1 + 1e-6)), 1) << velocity << version;
    }
}

TEST(Edges, OfSynchronousSchemesAreTwicePlusMomentum) {
  for (const double momentum : {0.0, 0.5, 0.9}) {
    for (const char* scheme : {"gpipe", "one_f_one_b", "zb_h1", "model_parallel"})
      EXPECT_EQ(edge_alone({.recurrence = recurrence_of(scheme, "{}", 3, 4),
                            .rule = momentum_rule(momentum)},
                           1),
                2 * (1 + momentum))
          << scheme;
    EXPECT_EQ(edge_alone({.recurrence = recurrence_of("data_parallel", "{}", 1),
                          .rule = momentum_rule(momentum)},
                         0),
              2 * (1 + momentum));
  }
}

TEST(Edges, OfSumsOverMicroBatchesAreAsMuchNearer) {
  const Dynamics mean{.recurrence = recurrence_of("pipedream", "{}", 3, 4), .rule = {}};
  const Dynamics sum{.recurrence = recurrence_of("pipedream", "{}", 3, 4, {.shares = {1, 1, 1, 1}}),
                     .rule = {}};
  EXPECT_NEAR(edge_alone(mean, 0), 4 * edge_alone(sum, 0), tolerance::kFewOperations);
}

/// Micro-batches of two samples and one: w ← w − a(⅔ w₋₂ + ⅓ w₋₁) at the first stage, whose
/// polynomial is (z + ½)(z² − 1½ z + 1) at a = ¾.
TEST(Edges, OfUnevenMicroBatchesWeighThemByTheirSamples) {
  const Dynamics uneven{
      .recurrence = recurrence_of("pipedream", "{}", 4, 2, {.shares = {2.0 / 3, 1.0 / 3}}),
      .rule = {}};
  EXPECT_NEAR(edge_alone(uneven, 0), 0.75, tolerance::kFewOperations);
}

TEST(Edges, OfAdamOneUpdateLateAreOneForEveryBeta) {
  for (const double beta1 : {0.0, 0.1, 0.5, 0.9, 0.99})
    EXPECT_NEAR(edge_alone(delayed(1, running_mean_rule(beta1)), 0), 1, tolerance::kSpectralEdge)
        << beta1;
}

/// Spike compensation (Kosson et al., 2021): W ← W − lr(av + bg), a = β^D, b = (1 − β^D)/(1 − β).
LinearRule spike_compensation(double momentum, int delay) {
  const double a = std::pow(momentum, delay);
  return {.momentum = momentum, .of_velocity = a, .of_gradient = (1 - a) / (1 - momentum)};
}

TEST(Edges, OfSpikeCompensationAreThoseOfGeometricPrediction) {
  for (const int delay : {1, 2, 3, 7})
    for (const double momentum : {0.5, 0.9}) {
      const Dynamics geometric{
          .recurrence = recurrence_of("spectrain", "{version: 2, velocity: geometric}", delay + 1),
          .rule = momentum_rule(momentum)};
      EXPECT_NEAR(edge_alone(delayed(delay, spike_compensation(momentum, delay)), 0),
                  edge_alone(geometric, 0), tolerance::kSpectralEdge)
          << delay << ", " << momentum;
    }
}

TEST(Edges, OfSpikeCompensationFollowFromTheSameGainOnTheWholeCircle) {
  constexpr int kDelay = 3;
  constexpr double kMomentum = 0.9;
  const Dynamics spike = delayed(kDelay, spike_compensation(kMomentum, kDelay));
  const Recurrence predicting =
      recurrence_of("spectrain", "{version: 2, velocity: geometric}", kDelay + 1);
  const ClosedLoop ours(spike.recurrence, spike.rule, {0}, {{1}}, {});
  const ClosedLoop theirs(predicting, momentum_rule(kMomentum), {0}, {{1}}, {});
  for (int i = 1; i <= 60; ++i) {
    const std::complex<double> z = std::polar(1.0, 0.05 * i);
    EXPECT_LT(std::abs(ours.gain(z).at(0, 0) - theirs.gain(z).at(0, 0)),
              tolerance::kHundredOperations * std::abs(ours.gain(z).at(0, 0)))
        << i;
  }
}

TEST(Edges, OfDelayedNesterovAreThoseOfPredictingOneStepGeometrically) {
  const Dynamics predicting{
      .recurrence = recurrence_of("spectrain", "{version: 2, velocity: geometric}", 2),
      .rule = momentum_rule(0.9)};
  EXPECT_NEAR(edge_alone(delayed(1, nesterov_rule(0.9)), 0), edge_alone(predicting, 0),
              tolerance::kSpectralEdge);
}

TEST(Edges, AreZeroWhereNoLearningRateConverges) {
  EXPECT_EQ(edge_alone(delayed(0, momentum_rule(1)), 0), 0);
  EXPECT_EQ(edge_alone(delayed(2, momentum_rule(1.5)), 0), 0);
  LinearRule uphill = momentum_rule(0.5);
  uphill.dampening = 2;
  EXPECT_EQ(edge_alone(delayed(1, uphill), 0), 0);
}

TEST(Edges, WithWeightDecayAreWhereTheSpectralRadiusIsOne) {
  for (const bool decoupled : {false, true}) {
    Dynamics dynamics = delayed(2, momentum_rule(0.9));
    (decoupled ? dynamics.rule.decoupled : dynamics.rule.l2) = 0.3;
    const double edge = coupled_edge(dynamics, {{1}});
    EXPECT_LT(radius(dynamics, edge * (1 - 1e-6)), 1);
    EXPECT_GT(radius(dynamics, edge * (1 + 1e-6)), 1);
    dynamics.lr = edge;
    EXPECT_NEAR(edge_alone(dynamics, 0), edge, tolerance::kSpectralEdge);
  }
}

/// L2 decay is curvature that all weights have, so that 2(1 + μ) bounds lr · (λ + decay).
TEST(Edges, AtACurvatureAreRatesThatAreStableWithTheirOwnDecay) {
  Dynamics dynamics = delayed(0, momentum_rule(0.5));
  dynamics.lr = 0.01;
  dynamics.rule.l2 = 0.5;
  EXPECT_NEAR(largest_lr_alone(dynamics, 0, 5), 3 / 5.5, tolerance::kSpectralEdge);
  EXPECT_EQ(largest_lr_alone(dynamics, 0, 0), std::numeric_limits<double>::infinity());
  for (const bool decoupled : {false, true}) {
    dynamics = delayed(2, momentum_rule(0.9));
    (decoupled ? dynamics.rule.decoupled : dynamics.rule.l2) = 0.3;
    for (const double curvature : {0.1, 1.0, 40.0})
      EXPECT_NEAR(largest_lr_alone(dynamics, 0, curvature) / coupled_edge(dynamics, {{curvature}}),
                  1, tolerance::kSpectralEdge);
  }
}

/// Also where the decay is stronger than the curvature: delayed gradients may then hold weights
/// that their decay alone would throw about.
TEST(Edges, WithTheirOwnDecayAreTheFirstRatesWhereTheSpectralRadiusIsOne) {
  constexpr double kNear = 1e-6;
  constexpr int kSmaller = 50;
  for (const int delay : {0, 1, 2})
    for (const double momentum : {0.0, 0.9})
      for (const double decay : {0.003, 0.3})
        for (const double curvature : {0.01, 0.1, 1.0})
          for (const bool decoupled : {false, true}) {
            Dynamics dynamics = delayed(delay, momentum_rule(momentum));
            (decoupled ? dynamics.rule.decoupled : dynamics.rule.l2) = decay;
            const std::string where = concat(delay, ", ", momentum, ", ", decay, ", ", curvature,
                                             decoupled ? ", decoupled" : ", L2");
            const double edge = largest_lr_alone(dynamics, 0, curvature);
            EXPECT_NEAR(coupled_edge(dynamics, {{curvature}}) / edge, 1, tolerance::kSpectralEdge)
                << where;
            const auto at = [&](double lr) { return spectral_radius(dynamics, {{curvature}}, lr); };
            EXPECT_GT(at(edge * (1 + kNear)), 1) << where;
            for (int i = 1; i <= kSmaller; ++i)
              EXPECT_LT(at(edge * (1 - kNear) * i / kSmaller), 1) << where << " at " << i;
          }
}

TEST(Edges, OfCoupledStagesAreWhereTheSpectralRadiusIsOne) {
  const Hessian hessian{{3, 1, -0.5, 0}, {1, 2, 1, 0.2}, {-0.5, 1, 4, 1}, {0, 0.2, 1, 1}};
  for (const auto& [scheme, options] :
       std::vector<std::pair<const char*, const char*>>{{"pipedream", "{}"},
                                                        {"spectrain", "{}"},
                                                        {"pipeoptim", "{}"},
                                                        {"pipemare", "{}"},
                                                        {"interlocking", "{combine: mean}"},
                                                        {"xpipe", "{}"}})
    for (const double momentum : {0.0, 0.9}) {
      const Dynamics dynamics{.recurrence = recurrence_of(scheme, options, 4),
                              .rule = momentum_rule(momentum),
                              .discrepancy = 0.5};
      const double edge = coupled_edge(dynamics, hessian);
      EXPECT_LT(spectral_radius(dynamics, hessian, edge * (1 - 1e-6)), 1) << scheme << momentum;
      EXPECT_GT(spectral_radius(dynamics, hessian, edge * (1 + 1e-6)), 1) << scheme << momentum;
      // No smaller learning rate is unstable.
      for (int i = 1; i < 40; ++i)
        EXPECT_LT(spectral_radius(dynamics, hessian, edge * i / 40), 1) << scheme << momentum << i;
    }
}

/// Hessians of networks with more parameters than samples are singular. Of rank one, H = u uᵀ, the
/// stages are one weight along u.
TEST(Edges, OfSingularHessiansAreFoundForEveryScheme) {
  const Hessian of_rank_one{{1, 2, 0, -1}, {2, 4, 0, -2}, {0, 0, 0, 0}, {-1, -2, 0, 1}};
  for (const SchemeCase& each : every_scheme()) {
    if (each.name == "data_parallel" || each.name == "delayed_sgd") continue;
    Dynamics dynamics{.recurrence = {}, .rule = momentum_rule(0.5)};
    try {
      dynamics.recurrence = recurrence_of(each.name, each.options, 4, 4);
    } catch (const Error&) {
      continue;  // it has no steady state in this shape
    }
    const double edge = coupled_edge(dynamics, of_rank_one);
    ASSERT_GT(edge, 0) << each.name << each.options;
    if (!std::isfinite(edge)) continue;
    EXPECT_LT(spectral_radius(dynamics, of_rank_one, edge * (1 - 1e-5)), 1 + 1e-9)
        << each.name << each.options;
    EXPECT_GT(spectral_radius(dynamics, of_rank_one, edge * (1 + 1e-5)), 1)
        << each.name << each.options;
  }
}

/// Curvature and learning rate have no unit of their own.
TEST(Edges, ScaleWithTheHessianOverAllOfDouble) {
  const Hessian hessian{{3, 1}, {1, 2}};
  const Dynamics dynamics{.recurrence = recurrence_of("pipedream", "{}", 2),
                          .rule = momentum_rule(0.9)};
  const double edge = coupled_edge(dynamics, hessian);
  for (const double unit : {1e-200, 1e-150, 1e150, 1e200}) {
    Hessian scaled = hessian;
    for (auto& row : scaled)
      for (double& number : row) number *= unit;
    EXPECT_NEAR(coupled_edge(dynamics, scaled) * unit / edge, 1, tolerance::kHundredOperations)
        << unit;
  }
}

TEST(Edges, OfAPeriodOfTwoUpdatesAreWhereTheSpectralRadiusIsOne) {
  // Two updates a mini-batch, as of different parts of it: the first reads the newest weights, the
  // second those of two updates before, with half the learning rate.
  Recurrence recurrence{.stages = {{}}, .rules = {{}}};
  recurrence.stages[0].push_back(
      {.scale = 1, .terms = {{.weight = 1, .forward = {{.version = 0}}}}});
  recurrence.stages[0].push_back(
      {.scale = 0.5, .terms = {{.weight = 1, .forward = {{.version = -1}}}}});
  for (const double momentum : {0.0, 0.9}) {
    const Dynamics dynamics{.recurrence = recurrence, .rule = momentum_rule(momentum)};
    const double edge = edge_alone(dynamics, 0);
    EXPECT_LT(radius(dynamics, edge * (1 - 1e-6)), 1) << momentum;
    EXPECT_GT(radius(dynamics, edge * (1 + 1e-6)), 1) << momentum;
    for (int i = 1; i < 40; ++i) EXPECT_LT(radius(dynamics, edge * i / 40), 1) << momentum << i;
  }
}

TEST(Edges, AreTheFirstOnesWhereLargerLearningRatesAreStableAgain) {
  Recurrence recurrence{.stages = {{{.scale = 1, .terms = {}}}}, .rules = {{}}};
  auto& terms = recurrence.stages[0][0].terms;
  terms.push_back({.weight = 1, .forward = {{.version = 0}}, .backward = {.version = 0}});
  terms.push_back({.weight = 0.2, .forward = {{.version = -2}}, .backward = {.version = -2}});
  const Dynamics dynamics{.recurrence = recurrence, .rule = momentum_rule(0.9)};
  const double edge = edge_alone(dynamics, 0);
  EXPECT_GT(radius(dynamics, edge * (1 + 1e-6)), 1);
  EXPECT_LT(radius(dynamics, 7 * edge), 1);
  for (int i = 1; i < 400; ++i) EXPECT_LT(radius(dynamics, edge * i / 400), 1) << i;
}

TEST(Edges, AreFoundWhereTwoEigenvaluesMeetNearTheAxis) {
  const Hessian hessian{{2, 1, 0.5}, {1, 3, 1}, {0.5, 1, 1.5}};
  const Dynamics dynamics{.recurrence = recurrence_of("pipeoptim", "{}", 3),
                          .rule = momentum_rule(0.5),
                          .discrepancy = 0.7};
  const double edge = coupled_edge(dynamics, hessian);
  EXPECT_LT(spectral_radius(dynamics, hessian, edge * (1 - 1e-6)), 1);
  EXPECT_GT(spectral_radius(dynamics, hessian, edge * (1 + 1e-6)), 1);
}

TEST(EffectiveDelay, IsTheRootOfTheMeanSquare) {
  EXPECT_NEAR(effective_delay(recurrence_of("pipedream", "{}", 4)), std::sqrt(14.0 / 4),
              tolerance::kFewOperations);
  EXPECT_EQ(effective_delay(recurrence_of("delayed_sgd", "{delay: 3}", 4)), 3);
  EXPECT_EQ(effective_delay(recurrence_of("gpipe", "{}", 4, 2)), 0);
}

}  // namespace
}  // namespace pipewright
