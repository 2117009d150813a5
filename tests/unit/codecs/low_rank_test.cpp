// SPDX-License-Identifier: Apache-2.0
// svd and power_iteration, against what is known of the best approximation (Eckart and Young).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/codecs/codec_trial.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

double length_of(const at::Tensor& x) {
  return x.to(at::kDouble).square().sum().sqrt().item<double>();
}

/// The least distance of matrices [n, a, b] from any of that rank: what the smaller eigenvalues of
/// XᵀX sum up to.
double best_distance(const at::Tensor& x, std::int64_t rank) {
  const at::Tensor d = x.to(at::kDouble);
  const at::Tensor eigenvalues = at::linalg_eigvalsh(at::bmm(d.transpose(1, 2), d));
  return std::sqrt(eigenvalues.narrow(1, 0, x.size(2) - rank).clamp_min(0).sum().item<double>());
}

at::Tensor of_rank(std::int64_t n, std::int64_t a, std::int64_t b, std::int64_t rank) {
  return at::bmm(at::randn({n, a, rank}), at::randn({n, rank, b}));
}

TEST(Svd, IsTheBestApproximationOfItsRank) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({2, 3, 12, 20});
  for (const int rank : {1, 3, 7}) {
    CodecTrial codec("svd", concat("{rank: ", rank, "}"));
    const at::Tensor frame = codec.frame(x), y = codec.arrived(frame);
    EXPECT_EQ(CodecTrial::payload(frame), 6 * (12 + 20) * rank * 4);
    const double best = best_distance(x.view({6, 12, 20}), rank);
    EXPECT_NEAR(length_of(y - x), best, tolerance::decomposed32(20, length_of(x))) << rank;
  }
  const at::Tensor low = of_rank(1, 9, 30, 2).view({9, 30});
  EXPECT_LT(length_of(CodecTrial("svd", "{rank: 2}").round_trip(low) - low),
            tolerance::decomposed32(30, length_of(low)));
}

/// The tolerance that svd has on a GPU, put to the test by float32 beside float64.
TEST(Svd, IsAsNearToThatInFloat64AsItsSingularValuesAllow) {
  at::manual_seed(4);
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{3, 5, 7}, {2, 3, 8, 8}, {16, 65}, {8, 24, 1000}})
    for (const std::int64_t rank : {1, 8}) {
      const at::Tensor x = at::randn(sizes) * at::randn(sizes).exp();
      const at::Tensor y = CodecTrial("svd", concat("{rank: ", rank, "}")).round_trip(x);
      const double tolerance = truncation_tolerance(x, rank);
      if (tolerance == 0) {
        EXPECT_TRUE(y.equal(x));
        continue;
      }
      const auto [u, s, vt] = at::linalg_svd(x.to(at::kDouble), false);
      const at::Tensor expected = at::matmul(
          u.narrow(-1, 0, rank) * s.narrow(-1, 0, rank).unsqueeze(-2), vt.narrow(-2, 0, rank));
      EXPECT_LE(length_of(y - expected), tolerance / 2) << x.sizes() << ", rank " << rank;
      EXPECT_LT(tolerance, 0.05 * length_of(expected)) << "it would miss mistakes";
    }
}

TEST(Svd, SendsAsItIsWhatFactorsWouldNotMakeSmaller) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{}, {50}, {3, 100}, {5, 8, 8}}) {
    const at::Tensor x = at::randn(sizes);
    CodecTrial codec("svd", "{rank: 4}");
    EXPECT_EQ(CodecTrial::payload(codec.frame(x)), 4 * x.numel());
    EXPECT_TRUE(codec.round_trip(x).equal(x));
  }
}

/// Columns made orthonormal one after another, in float64.
at::Tensor gram_schmidt(const at::Tensor& x) {
  const at::Tensor q = x.clone();
  for (std::int64_t j = 0; j < x.size(1); ++j) {
    at::Tensor column = q.select(1, j);
    for (int again = 0; again < 2; ++again)
      for (std::int64_t i = 0; i < j; ++i) column.sub_(q.select(1, i) * q.select(1, i).dot(column));
    column.div_(column.norm());
  }
  return q;
}

TEST(PowerIteration, IsItsEquationsFromAKnownStart) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({3, 8, 5, 4}), start = at::randn({3, 20, 2});
  for (const int rounds : {1, 2, 3}) {
    CodecTrial codec("power_iteration", concat("{rank: 2, rounds: ", rounds, "}"));
    codec.sender().restore({{"p.3x20x2", start}});
    const at::Tensor frame = codec.frame(x), y = codec.arrived(frame);
    EXPECT_EQ(CodecTrial::payload(frame), 4 * 3 * 2 * (20 + 8));
    for (std::int64_t sample = 0; sample < 3; ++sample) {
      const at::Tensor m = x[sample].to(at::kDouble).view({8, 20});
      at::Tensor p = start[sample].to(at::kDouble), q;
      for (int round = 1; round < rounds; ++round) p = m.t().matmul(m.matmul(p));
      q = gram_schmidt(m.matmul(gram_schmidt(p)));
      const at::Tensor expected = q.matmul(q.t()).matmul(m);
      EXPECT_LT(length_of(y[sample].view({8, 20}) - expected),
                tolerance::kPowerIteration * length_of(m))
          << rounds;
    }
  }
}

TEST(PowerIteration, ComesCloseToTheBestAsMicroBatchesGoOn) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 16, 40});
  const double best = best_distance(x, 3);
  CodecTrial codec("power_iteration", "{rank: 3, rounds: 1}");
  const double first = length_of(codec.round_trip(x) - x);
  double last = first;
  for (int step = 0; step < 60; ++step) last = length_of(codec.round_trip(x) - x);
  EXPECT_GT(first, 1.01 * best);
  EXPECT_NEAR(last, best, tolerance::kConverged * best);
}

TEST(PowerIteration, LosesNothingOfItsRankAndSendsSmallOnesAsTheyAre) {
  at::manual_seed(4);
  const at::Tensor low = of_rank(4, 10, 30, 2);
  EXPECT_LT(length_of(CodecTrial("power_iteration", "{rank: 2}").round_trip(low) - low),
            tolerance::decomposed32(30, length_of(low)));
  EXPECT_TRUE(CodecTrial("power_iteration")
                  .round_trip(at::zeros({2, 16, 16}))
                  .equal(at::zeros({2, 16, 16})));
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{6, 50}, {3, 4, 4}, {2, 1, 9}}) {
    const at::Tensor x = at::randn(sizes);
    EXPECT_TRUE(CodecTrial("power_iteration").round_trip(x).equal(x));
  }
}

}  // namespace
}  // namespace pipewright::testing
