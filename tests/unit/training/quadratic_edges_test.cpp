// SPDX-License-Identifier: Apache-2.0
// Every scheme on a quadratic problem, through the trainer: one percent inside the largest stable
// learning rate the loss falls, one percent outside it grows, each at the predicted pace.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/tensors/torch.h"
#include "core/training/trainer.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"
#include "tests/unit/training/recurrence.h"

namespace pipewright::test {
namespace {

using Readings = std::vector<Reading>;

/// A scheme, and what it reads at each stage by its definition.
struct SchemeOnQuadratic {
  std::string scheme;
  Readings readings;
  int microbatches = 1;
  int replicas = 1;

  int stages() const { return static_cast<int>(readings.size()); }
};

void PrintTo(const SchemeOnQuadratic& each, std::ostream* out) {
  *out << each.scheme;
}

/// "{name: pipedream, vertical_sync: true}" as "pipedreamvertical_synctrue".
std::string name_of(const SchemeOnQuadratic& each) {
  std::string name = each.scheme;
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; });
  return name.substr(std::string("name").size());
}

/// The losses of all mini-batches.
std::vector<double> losses(const SchemeOnQuadratic& each, const std::string& model, double momentum,
                           double lr, int minibatches) {
  const int samples = each.microbatches * each.replicas;
  Laboratory laboratory(concat(
      "{dataset: {name: quadratic, train: ", minibatches * samples,
      "}, model: {name: quadratic, layers: ", each.stages(), ", ", model,
      "}, loader: {batch_size: ", samples, ", prefetch: 0}, pipeline: {stages: ", each.stages(),
      ", microbatches: ", each.microbatches, ", replicas: ", each.replicas,
      "}, scheme: ", each.scheme, ", optimizer: {name: sgd, lr: ", lr, ", momentum: ", momentum,
      "}, train: {epochs: 1, precision: float64, drain: never}}"));
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  std::vector<std::vector<double>> all;
  trainer.collect_losses(all);
  trainer.train();
  std::vector<double> own;
  for (const auto& sites : all) own.push_back(sites[0]);
  return own;
}

/// Mini-batches after which only the slowest mode is left, and over which losses are added up.
constexpr int kTransient = 200, kWindow = 200;
/// What is left of the other modes then. Measured: 3e-15 where the slowest mode is real and has no
/// phase; elsewhere the error of the phase alone was enough. The rest is margin.
constexpr double kOtherModes = 1e-3;

/// How far the logarithm of a ratio of two sums of losses may be off. Losses of a mode z = r·e^(iω)
/// go as r²ⁱ·(1 + cos(2ωi + φ)), so that a sum is Σ r²ⁱ·(1 ± δ), δ = |Σ z²ⁱ| / Σ r²ⁱ at most, where
/// both are geometric series. A real mode has no phase.
double phase_error(std::complex<double> mode) {
  if (mode.imag() == 0) return 0;
  const auto series = [](std::complex<double> ratio) {
    return std::abs((1.0 - std::pow(ratio, kWindow)) / (1.0 - ratio));
  };
  const double part = series(mode * mode) / series(std::norm(mode));
  return std::log((1 + part) / (1 - part));
}

/// Of several modes of one magnitude: no sum of losses has a larger part δ than the largest of
/// them.
double phase_error(const std::vector<std::complex<double>>& modes) {
  double largest = 0;
  for (const auto& mode : modes) largest = std::max(largest, phase_error(mode));
  return largest;
}

/// Trains at that learning rate and compares the growth of the loss with r².
void expect_growth(const SchemeOnQuadratic& each, const std::string& model,
                   const Recurrence& recurrence, double lr) {
  const auto modes = slowest_modes(recurrence, lr);
  const double growth = std::log(std::norm(modes.front()));
  const double error = phase_error(modes) + kOtherModes;
  const double least = std::max(2 * error, 0.05);  // of growth that is to be seen
  const int apart = static_cast<int>(std::ceil(least / std::abs(growth)));
  const auto all = losses(each, model, recurrence.momentum, lr, kTransient + apart + kWindow);
  const auto sum = [&](int begin) {
    return std::accumulate(all.begin() + begin, all.begin() + begin + kWindow, 0.0);
  };
  const double seen = std::log(sum(kTransient + apart) / sum(kTransient));
  EXPECT_NEAR(seen, growth * apart, error)
      << each.scheme << ", momentum " << recurrence.momentum << ", learning rate " << lr;
}

/// One percent inside the edge the losses fall, one percent outside they grow.
void expect_edge(const SchemeOnQuadratic& each, const std::string& model,
                 const Recurrence& recurrence, double edge) {
  ASSERT_LT(slowest_magnitude(recurrence, 0.99 * edge), 1);
  ASSERT_GT(slowest_magnitude(recurrence, 1.01 * edge), 1);
  expect_growth(each, model, recurrence, 0.99 * edge);
  expect_growth(each, model, recurrence, 1.01 * edge);
}

at::Tensor identity(int stages) {
  return at::eye(stages, at::kDouble);
}

/// The spectrum of ones: every stage by itself, with the same curvature.
std::string ones(int stages) {
  std::string list = "spectrum: [1";
  for (int k = 1; k < stages; ++k) list += ", 1";
  return list + "]";
}

const Readings kFresh(3), kPipeDream{{2, 0}, {1, 0}, {0, 0}}, kPredicted{{2, 2}, {1, 1}, {0, 0}};

const SchemeOnQuadratic kSchemes[] = {
    {"{name: model_parallel}", kFresh},
    {"{name: gpipe}", kFresh, 2},
    {"{name: one_f_one_b}", kFresh, 3},
    {"{name: interleaved, chunks: 2}", Readings(4), 2},
    {"{name: zb_h1}", kFresh, 3},
    {"{name: zb_h2}", kFresh, 3},
    {"{name: data_parallel}", Readings(1), 1, 2},
    {"{name: pipedream}", kPipeDream},
    {"{name: pipedream, weight_stashing: false}", kPipeDream},
    {"{name: pipedream, vertical_sync: true}", Readings(3, {2, 0})},
    {"{name: pipedream_2bw}", Readings(3, {1, 0}), 3},
    {"{name: spectrain, version: 1}", {{2, 2}, {1, 1}, {0, 1}}},
    {"{name: spectrain, version: 2}", kPredicted},
    {"{name: pipeoptim}", kPredicted},
    {"{name: pipeoptim, s_offset: 1}", {{2, 3}, {1, 2}, {0, 1}}},
    {"{name: pipemare, annealing: 0}", kPipeDream},
    {"{name: xpipe}", {{2, 2}, {1, 2}, {0, 1}}},
    {"{name: delayed_sgd, delay: 3}", Readings(3, {3, 0})},
    {"{name: delayed_sgd, delay: [0, 1, 4]}", {{0, 0}, {1, 0}, {4, 0}}},
};

class QuadraticEdges : public testing::TestWithParam<SchemeOnQuadratic> {};

TEST_P(QuadraticEdges, AreWhereTheRecurrenceSays) {
  const SchemeOnQuadratic& each = GetParam();
  for (const double momentum : {0.0, 0.9}) {
    const Recurrence recurrence{identity(each.stages()), each.readings, momentum};
    expect_edge(each, ones(each.stages()), recurrence, stability_edge(recurrence));
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, QuadraticEdges, testing::ValuesIn(kSchemes),
                         [](const auto& each) { return name_of(each.param); });

/// H = tridiag(1, 2, 1) on four stages, each of which depends on its neighbours. The edges were
/// computed by another program, from the companion matrix of delays on the columns of H.
struct Coupled {
  SchemeOnQuadratic each;
  double edge, with_momentum;
};
const Coupled kCoupled[] = {
    {{"{name: gpipe}", Readings(4)}, 0.55279, 1.05029},
    {{"{name: pipedream_2bw}", Readings(4, {1, 0}), 4}, 0.27639, 0.02764},
    {{"{name: pipedream}", {{3, 0}, {2, 0}, {1, 0}, {0, 0}}}, 0.21460, 0.01875},
    {{"{name: delayed_sgd, delay: 3}", Readings(4, {3, 0})}, 0.12301, 0.00961},
    {{"{name: spectrain, version: 2}", {{3, 3}, {2, 2}, {1, 1}, {0, 0}}}, 0.11504, 0.03069},
};

void PrintTo(const Coupled& coupled, std::ostream* out) {
  PrintTo(coupled.each, out);
}

class QuadraticEdgesOfCoupledStages : public testing::TestWithParam<Coupled> {};

TEST_P(QuadraticEdgesOfCoupledStages, AreThoseOfAnotherProgram) {
  const at::Tensor off = at::ones({3}, at::kDouble);
  const at::Tensor h = 2 * identity(4) + at::diag(off, 1) + at::diag(off, -1);
  const Coupled& coupled = GetParam();
  for (const double momentum : {0.0, 0.9}) {
    const Recurrence recurrence{h, coupled.each.readings, momentum};
    const double edge = momentum == 0 ? coupled.edge : coupled.with_momentum;
    EXPECT_NEAR(stability_edge(recurrence), edge, tolerance::written(5));
    expect_edge(coupled.each, "hessian: [[2, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 1], [0, 0, 1, 2]]",
                recurrence, edge);
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, QuadraticEdgesOfCoupledStages, testing::ValuesIn(kCoupled),
                         [](const auto& coupled) { return name_of(coupled.param.each); });

/// Backwards with other weights than their forwards, λ = 1, against the edges of another program:
/// PipeDream without stashing, PipeMare with its correction of decay 0.135^(1/τ).
TEST(QuadraticEdgesWithDiscrepancy, AreThoseOfAnotherProgram) {
  struct Case {
    Readings readings;
    double discrepancy, uncorrected, corrected;
  };
  for (const Case& c : {Case{{{1, 0}, {0, 0}}, 1, 0.50000, 0.86915},
                        Case{{{3, 0}, {2, 0}, {1, 0}, {0, 0}}, 1, 0.18880, 0.39985}}) {
    Recurrence recurrence{identity(static_cast<int>(c.readings.size())), c.readings};
    recurrence.discrepancy = c.discrepancy;
    const std::string model =
        concat(ones(static_cast<int>(c.readings.size())), ", discrepancy: ", c.discrepancy);
    EXPECT_NEAR(stability_edge(recurrence), c.uncorrected, tolerance::written(5));
    expect_edge({"{name: pipedream, weight_stashing: false}", c.readings}, model, recurrence,
                c.uncorrected);
    for (const Reading& reading : c.readings)
      recurrence.drift_decays.push_back(std::pow(0.135, 1.0 / std::max(1, reading.delay)));
    EXPECT_NEAR(stability_edge(recurrence), c.corrected, tolerance::written(5));
    expect_edge({"{name: pipemare, annealing: 0}", c.readings}, model, recurrence, c.corrected);
  }
}

/// A prediction that only the forward has is a discrepancy, too; with stashing there is none.
TEST(QuadraticEdgesWithDiscrepancy, AreOfWhatBackwardsRead) {
  const SchemeOnQuadratic predicts{"{name: pipeoptim}", kPredicted};
  Recurrence recurrence{identity(3), kPredicted, 0.9};
  recurrence.discrepancy = 1;
  expect_edge(predicts, ones(3) + ", discrepancy: 1", recurrence, stability_edge(recurrence));
  const Recurrence stashed{identity(3), kPipeDream, 0.9};
  expect_edge({"{name: pipedream}", kPipeDream}, ones(3) + ", discrepancy: 1", stashed,
              stability_edge(stashed));
}

/// One stage by itself: a delay, and steps predicted.
double edge_of(Reading reading, double momentum) {
  return stability_edge({identity(1), {reading}, momentum});
}

TEST(QuadraticRecurrence, HasTheEdgesOfTheClosedForms) {
  const double bisected = 1e-12;  // of the edge: eigenvalues near 1 are good to some 10⁻¹⁴
  for (const int delay : {0, 1, 2, 3, 7}) {
    const double edge = 2 * std::sin(std::numbers::pi / (4 * delay + 2));
    EXPECT_NEAR(edge_of({delay, 0}, 0), edge, bisected) << delay;
  }
  for (const double momentum : {0.5, 0.9}) {
    EXPECT_NEAR(edge_of({0, 0}, momentum), 2 * (1 + momentum), bisected);
    EXPECT_NEAR(edge_of({1, 0}, momentum), 1 - momentum, bisected);
  }
}

TEST(QuadraticRecurrence, HasTheEdgesOfAnotherProgram) {
  EXPECT_NEAR(edge_of({3, 0}, 0.9), 0.03478406, tolerance::written(8));
  EXPECT_NEAR(edge_of({7, 0}, 0.5), 0.09575316, tolerance::written(8));
  EXPECT_NEAR(edge_of({3, 3}, 0), 0.26556, tolerance::written(5));
  EXPECT_NEAR(edge_of({1, 1}, 0.9), 0.27016, tolerance::written(5));
  EXPECT_NEAR(edge_of({7, 7}, 0.9), 0.02321, tolerance::written(5));
}

/// Noise in the targets, float32 and a discrepancy: the same bits in both executions.
TEST(Quadratic, IsTheSameInBothExecutions) {
  for (const char* scheme : {"{name: pipemare}", "{name: zb_h1}", "{name: pipedream_2bw}",
                             "{name: delayed_sgd, delay: {law: geometric, mean: 2}}"}) {
    Laboratory laboratory(concat(
        "{dataset: {name: quadratic, train: 48, noise: 0.1}, model: {name: quadratic, width: 3, "
        "coupled: true, discrepancy: 0.5, start: normal}, pipeline.microbatches: 4, scheme: ",
        scheme, "}"));
    expect_same_bits(laboratory, scheme);
  }
}

}  // namespace
}  // namespace pipewright::test
