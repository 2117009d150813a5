// SPDX-License-Identifier: Apache-2.0
// Edges of stability against numbers that other programs computed from the characteristic
// polynomials, to the digits in which they are written here.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/stability/edges.h"
#include "tests/unit/stability/dynamics.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

struct Golden {
  int delay;
  double edge;
};

TEST(StabilityGoldens, OfSgdAreOfPipeMaresLemma) {
  for (const auto& [delay, edge] :
       std::vector<Golden>{{0, 2}, {1, 1}, {2, 0.618034}, {3, 0.445042}, {7, 0.209057}})
    EXPECT_NEAR(edge_alone(delayed(delay, {}), 0), edge, tolerance::written(6)) << delay;
  for (int delay = 0; delay <= 40; ++delay)
    EXPECT_NEAR(edge_alone(delayed(delay, {}), 0), 2 * std::sin(std::numbers::pi / (4 * delay + 2)),
                tolerance::kSpectralEdge)
        << delay;
}

TEST(StabilityGoldens, OfMomentum) {
  struct Row {
    double momentum;
    std::vector<Golden> edges;
  };
  const std::vector<Row> rows{
      {0.5,
       {{0, 3}, {1, 0.5}, {2, 0.28077641}, {3, 0.19926722}, {7, 0.09575316}, {15, 0.04803745}}},
      {0.9,
       {{0, 3.8}, {1, 0.1}, {2, 0.05124922}, {3, 0.03478406}, {7, 0.01575196}, {15, 0.00792858}}},
      {0.99,
       {{0, 3.98}, {1, 0.01}, {2, 0.0050125}, {3, 0.00334812}, {7, 0.00144473}, {15, 0.00068281}}}};
  for (const auto& [momentum, edges] : rows)
    for (const auto& [delay, edge] : edges)
      EXPECT_NEAR(edge_alone(delayed(delay, momentum_rule(momentum)), 0), edge,
                  tolerance::written(8))
          << momentum << ", " << delay;
}

TEST(StabilityGoldens, OfAdamWithAFrozenPreconditioner) {
  for (const auto& [delay, edge] :
       std::vector<Golden>{{0, 38}, {1, 1.0}, {2, 0.5125}, {3, 0.3478}, {7, 0.1575}})
    EXPECT_NEAR(edge_alone(delayed(delay, running_mean_rule(0.9)), 0), edge, tolerance::written(4))
        << delay;
}

/// Stage 0 of SpecTrain's version 2 predicts as many steps as its gradient is late.
double edge_of_prediction(const std::string& velocity, double momentum, int delay) {
  const Dynamics dynamics{.recurrence = recurrence_of(
                              "spectrain", "{version: 2, velocity: " + velocity + "}", delay + 1),
                          .rule = momentum_rule(momentum)};
  return edge_alone(dynamics, 0);
}

TEST(StabilityGoldens, OfPredictions) {
  struct Row {
    double momentum;
    int delay;
    double none, nesterov, linear, geometric;
  };
  for (const Row& row : std::vector<Row>{{0, 1, 1, 1, 0.61803, 1},
                                         {0, 3, 0.44504, 0.44504, 0.26556, 0.44504},
                                         {0.5, 3, 0.19927, 0.21703, 0.16278, 0.22256},
                                         {0.9, 1, 0.1, 0.25314, 0.27016, 0.25314},
                                         {0.9, 3, 0.03478, 0.04637, 0.07226, 0.06926},
                                         {0.9, 7, 0.01575, 0.01764, 0.02321, 0.02427}}) {
    SCOPED_TRACE(concat(row.momentum, ", ", row.delay));
    const double digits = tolerance::written(5);
    EXPECT_NEAR(edge_alone(delayed(row.delay, momentum_rule(row.momentum)), 0), row.none, digits);
    EXPECT_NEAR(edge_alone(delayed(row.delay, nesterov_rule(row.momentum)), 0), row.nesterov,
                digits);
    EXPECT_NEAR(edge_of_prediction("buffer", row.momentum, row.delay), row.linear, digits);
    EXPECT_NEAR(edge_of_prediction("geometric", row.momentum, row.delay), row.geometric, digits);
  }
}

TEST(StabilityGoldens, OfAsyncPpsDiscountAreNesterovsOverOneMinusMomentum) {
  struct Row {
    double momentum;
    int delay;
    double edge;
  };
  for (const Row& row : std::vector<Row>{
           {0.5, 3, 0.43406}, {0.9, 1, 2.53138}, {0.9, 3, 0.46371}, {0.9, 7, 0.17638}}) {
    LinearRule rule = nesterov_rule(row.momentum);  // its gradients are multiplied by 1 − γ
    rule.dampening = row.momentum;
    rule.of_gradient = 1 - row.momentum;
    EXPECT_NEAR(edge_alone(delayed(row.delay, rule), 0), row.edge, tolerance::written(5))
        << row.momentum << ", " << row.delay;
  }
}

TEST(StabilityGoldens, OfPipeMaresDiscrepancyWithAndWithoutItsCorrection) {
  struct Row {
    int delay;
    double discrepancy, without, with;
  };
  for (const Row& row : std::vector<Row>{
           {1, 1, 0.50000, 0.86915}, {3, 1, 0.18880, 0.39985}, {7, 3, 0.03852, 0.15548}}) {
    const auto edge = [&](const char* correction) {
      return edge_alone(
          {.recurrence = recurrence_of(
               "pipemare", concat("{annealing: 0, correction: ", correction, "}"), row.delay + 1),
           .rule = {},
           .discrepancy = row.discrepancy},
          0);
    };
    EXPECT_NEAR(edge("false"), row.without, tolerance::written(5)) << row.delay;
    EXPECT_NEAR(edge("true"), row.with, tolerance::written(5)) << row.delay;
  }
}

TEST(StabilityGoldens, OfAWholePipeline) {
  const Hessian hessian{{2, 1, 0, 0}, {1, 2, 1, 0}, {0, 1, 2, 1}, {0, 0, 1, 2}};
  struct Row {
    const char* scheme;
    const char* options;
    int microbatches;
    double plain, with_momentum;
  };
  for (const Row& row : std::vector<Row>{{"one_f_one_b", "{}", 1, 0.55279, 1.05029},
                                         {"pipedream_2bw", "{}", 4, 0.27639, 0.02764},
                                         {"pipedream", "{}", 1, 0.21460, 0.01875},
                                         {"delayed_sgd", "{delay: 3}", 1, 0.12301, 0.00961},
                                         {"spectrain", "{version: 2}", 1, 0.11504, 0.03069}}) {
    const Recurrence recurrence = recurrence_of(row.scheme, row.options, 4, row.microbatches);
    EXPECT_NEAR(coupled_edge({.recurrence = recurrence, .rule = {}}, hessian), row.plain,
                tolerance::written(5))
        << row.scheme;
    EXPECT_NEAR(coupled_edge({.recurrence = recurrence, .rule = momentum_rule(0.9)}, hessian),
                row.with_momentum, tolerance::written(5))
        << row.scheme;
  }
}

}  // namespace
}  // namespace pipewright
