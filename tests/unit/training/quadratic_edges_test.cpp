// SPDX-License-Identifier: Apache-2.0
// Every scheme on a quadratic problem, through the trainer: one percent inside the largest stable
// learning rate the loss falls, one percent outside it grows, each at the predicted pace.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "core/stage/torch.h"
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
  std::string more = {};  ///< further changes of the experiment, each after ", "

  int stages() const { return static_cast<int>(readings.size()); }
};

void PrintTo(const SchemeOnQuadratic& each, std::ostream* out) {
  *out << each.scheme << each.more;
}

/// The losses of all mini-batches.
std::vector<double> losses(const SchemeOnQuadratic& each, const std::string& model, double momentum,
                           double lr, int minibatches) {
  Laboratory laboratory(concat(
      "{dataset: {name: quadratic, train: ", minibatches * each.microbatches,
      "}, model: {name: quadratic, layers: ", each.stages(), ", ", model,
      "}, loader: {batch_size: ", each.microbatches,
      ", prefetch: 0}, pipeline: {stages: ", each.stages(), ", microbatches: ", each.microbatches,
      "}, scheme: ", each.scheme, ", optimizer: {name: sgd, lr: ", lr, ", momentum: ", momentum,
      "}, train: {epochs: 1, precision: float64, drain: never}", each.more, "}"));
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
constexpr int kTransient = 400, kWindow = 200;
/// What a test must see of the growth: the logarithm of a ratio of losses.
constexpr double kSeen = 0.4;
/// Losses over one mode go as r²ⁱ cos²(ωi + φ) = r²ⁱ/2 · (1 + cos(2ωi + 2φ)). The cosines of n
/// steps add up to 1/|sin ω| at most, so that each of two sums of n losses is off by 1/(n |sin ω|)
/// of itself; ω ≥ 0.07 here. Half of kSeen is more than both.
constexpr double kWindowed = 0.2;
static_assert(2 / (kWindow * 0.069) < kWindowed);

/// Trains at that learning rate and compares the growth of the loss, per window, with r².
void expect_growth(const SchemeOnQuadratic& each, const std::string& model,
                   const Recurrence& recurrence, double lr) {
  const double growth = 2 * std::log(spectral_radius(recurrence, lr));
  const int apart = std::max(kWindow, static_cast<int>(std::ceil(kSeen / std::abs(growth))));
  const auto all = losses(each, model, recurrence.momentum, lr, kTransient + apart + kWindow);
  const auto sum = [&](int begin) {
    return std::accumulate(all.begin() + begin, all.begin() + begin + kWindow, 0.0);
  };
  const double seen = std::log(sum(kTransient + apart) / sum(kTransient));
  std::printf("%s %g lr %g: growth %g predicted %g in %d\n", each.scheme.c_str(),
              recurrence.momentum, lr, seen, growth * apart, apart);
  EXPECT_NEAR(seen, growth * apart, kWindowed) << "at learning rate " << lr;
}

void expect_edge(const SchemeOnQuadratic& each, const std::string& model,
                 const Recurrence& recurrence) {
  const double edge = stability_edge(recurrence);
  EXPECT_LT(spectral_radius(recurrence, 0.99 * edge), 1);
  EXPECT_GT(spectral_radius(recurrence, 1.01 * edge), 1);
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
    {"{name: data_parallel}", Readings(1), 1, ", loader.batch_size: 2, pipeline.replicas: 2"},
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
  for (const double momentum : {0.0, 0.9})
    expect_edge(
        each, ones(each.stages()),
        {.hessian = identity(each.stages()), .readings = each.readings, .momentum = momentum});
}

INSTANTIATE_TEST_SUITE_P(Schemes, QuadraticEdges, testing::ValuesIn(kSchemes));

}  // namespace
}  // namespace pipewright::test
