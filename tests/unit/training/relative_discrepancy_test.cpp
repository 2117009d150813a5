// SPDX-License-Identifier: Apache-2.0
// `stability --discrepancy` and the model `quadratic` mean one Δ: a training at 0.97 of the edge
// that the command names converges, and one at 1.03 diverges.
#include <gtest/gtest.h>

#include <numeric>

#include "core/experiment/dynamics.h"
#include "core/training/trainer.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

std::string quadratic_experiment(const std::string& scheme, const std::string& model,
                                 double momentum, double lr) {
  return concat("{dataset: {name: quadratic, train: 1200}, model: {name: quadratic, layers: 3, ",
                model,
                "}, loader: {batch_size: 1, prefetch: 0}, pipeline: {stages: 3}, scheme: ", scheme,
                ", optimizer: {name: sgd, lr: ", lr, ", momentum: ", momentum,
                "}, train: {epochs: 1, precision: float64, drain: never}}");
}

/// By which factor the losses of the last third are larger than those of the second.
double growth_of_losses(const std::string& experiment) {
  Laboratory laboratory(experiment);
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  std::vector<std::vector<double>> all;
  trainer.collect_losses(all);
  trainer.train();
  double second = 0, last = 0;
  for (std::size_t i = 400; i < 800; ++i) second += all[i][0];
  for (std::size_t i = 800; i < 1200; ++i) last += all[i][0];
  return last / second;
}

pipewright::Dynamics dynamics_with(const std::string& scheme, double momentum, double delta) {
  Laboratory laboratory(quadratic_experiment(scheme, "spectrum: [4, 4, 4]", momentum, 0.01));
  pipewright::Dynamics dynamics = *dynamics_of(laboratory.experiment);
  dynamics.discrepancy = delta;
  return dynamics;
}

constexpr double kDelta = 1.5;
const char* const kTwoVersions[] = {"{name: pipedream, weight_stashing: false}",
                                    "{name: pipeoptim}", "{name: pipemare, annealing: 0}"};

TEST(RelativeDiscrepancy, HasTheEdgeThatStabilityNames) {
  for (const char* scheme : kTwoVersions)
    for (const double momentum : {0.0, 0.8}) {
      const double edge = edge_alone(dynamics_with(scheme, momentum, kDelta), 0) / 4;
      for (const double factor : {0.97, 1.03}) {
        const double growth = growth_of_losses(quadratic_experiment(
            scheme, concat("spectrum: [4, 4, 4], relative_discrepancy: ", kDelta), momentum,
            factor * edge));
        EXPECT_EQ(growth > 1, factor > 1) << scheme << momentum << " " << growth;
      }
    }
}

TEST(RelativeDiscrepancy, IsOfTheLayersOwnBlockInAWholePipeline) {
  const Hessian hessian{{5, 1, 0.5, 0, 1, 0}, {1, 3, 0, 0.5, 0, 0}, {0.5, 0, 4, 1, 0, 1},
                        {0, 0.5, 1, 2, 0, 0}, {1, 0, 0, 0, 6, 2},   {0, 0, 1, 0, 2, 3}};
  std::vector<std::string> rows;
  for (const auto& row : hessian) {
    std::vector<std::string> numbers;
    for (const double number : row) numbers.push_back(concat(number));
    rows.push_back("[" + join(numbers, ", ") + "]");
  }
  const std::string model =
      concat("width: 2, hessian: [", join(rows, ", "), "], relative_discrepancy: ", kDelta);
  for (const char* scheme : kTwoVersions) {
    const double edge = coupled_edge(dynamics_with(scheme, 0.5, kDelta), hessian, {2, 2, 2});
    for (const double factor : {0.97, 1.03}) {
      const double growth =
          growth_of_losses(quadratic_experiment(scheme, model, 0.5, factor * edge));
      EXPECT_EQ(growth > 1, factor > 1) << scheme << " " << growth;
    }
  }
}

/// Files of earlier versions keep their meaning: Δ as a number is Δ/λ of the curvature λ.
TEST(RelativeDiscrepancy, IsTheNumberDividedByTheCurvature) {
  const auto losses = [](const std::string& model) {
    return growth_of_losses(quadratic_experiment(kTwoVersions[0], model, 0, 0.05));
  };
  EXPECT_EQ(losses("spectrum: [4, 4, 4], discrepancy: 6"),
            losses("spectrum: [4, 4, 4], relative_discrepancy: 1.5"));
}

}  // namespace
}  // namespace pipewright::test
