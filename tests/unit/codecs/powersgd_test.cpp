// SPDX-License-Identifier: Apache-2.0
// PowerSGD with replicas that average by hand.
#include "core/codecs/powersgd.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "tests/unit/tolerances.h"

namespace pipewright::testing {
namespace {

class Replicas {
 public:
  Replicas(int count, at::IntArrayRef sizes, std::int64_t rank) {
    for (int i = 0; i < count; ++i) each_.emplace_back(sizes, rank, 7, "stage.weight");
  }
  /// What every replica takes as the gradient; checks that all take the same.
  at::Tensor step(const std::vector<at::Tensor>& gradients) {
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < each_.size(); ++i) parts.push_back(each_[i].left(gradients[i]));
    const at::Tensor left = at::stack(parts).mean(0);
    parts.clear();
    for (PowerSgd& replica : each_) parts.push_back(replica.right(left));
    const at::Tensor right = at::stack(parts).mean(0);
    at::Tensor taken;
    for (PowerSgd& replica : each_) {
      const at::Tensor own = replica.approximation(right);
      EXPECT_TRUE(!taken.defined() || own.equal(taken));
      taken = own;
    }
    return taken;
  }
  PowerSgd& operator[](std::size_t i) { return each_[i]; }

 private:
  std::vector<PowerSgd> each_;
};

/// How much longer the longest combination of a matrix's columns is than the shortest.
double condition_of(const at::Tensor& x) {
  const at::Tensor values = at::linalg_svdvals(x.to(at::kDouble));
  return (values[0] / values[-1]).item<double>();
}

double powersgd_length_of(const at::Tensor& x) {
  return x.norm().item<double>();
}

at::Tensor error_of(const PowerSgd& replica) {
  return replica.state().back().second;
}

TEST(PowerSgd, IsTheMeanWhereThatHasNoHigherRank) {
  at::manual_seed(1);
  const at::Tensor mean = at::randn({12, 3}).matmul(at::randn({3, 30})).view({12, 5, 6}),
                   apart = at::randn({12, 5, 6});
  Replicas replicas(2, {12, 5, 6}, 3);
  EXPECT_EQ(replicas[0].bytes(), 4 * 3 * (12 + 30));
  const at::Tensor q = replicas[0].state().front().second, matrix = mean.view({12, 30});
  EXPECT_LT(powersgd_length_of(replicas.step({mean + apart, mean - apart}) - mean),
            tolerance::projected32(powersgd_length_of(mean) + powersgd_length_of(apart), 30,
                                   condition_of(matrix.matmul(q))));
}

TEST(PowerSgd, IsItsEquations) {
  at::manual_seed(2);
  const at::Tensor m = at::randn({10, 16}), q = at::randn({16, 2});
  PowerSgd replica({10, 16}, 2, 0, "w");
  replica.restore({{"q", q}});
  const at::Tensor p = replica.left(m);
  EXPECT_TRUE(p.equal(m.matmul(q)));
  const at::Tensor right = replica.right(p), taken = replica.approximation(right);
  // The projection of m onto the span of p, whatever its basis.
  const at::Tensor d = p.to(at::kDouble);
  const at::Tensor projector = d.matmul(at::linalg_inv(d.t().matmul(d))).matmul(d.t());
  EXPECT_LT(powersgd_length_of(taken - projector.matmul(m.to(at::kDouble))),
            tolerance::projected32(powersgd_length_of(m), 16, condition_of(p)));
  EXPECT_TRUE(error_of(replica).equal(m - taken));
}

TEST(PowerSgd, LosesNothingInTheLongRun) {
  at::manual_seed(3);
  Replicas replicas(3, {8, 20}, 1);
  at::Tensor wanted = at::zeros({8, 20}), taken = at::zeros({8, 20});
  for (int step = 0; step < 25; ++step) {
    std::vector<at::Tensor> gradients;
    for (int i = 0; i < 3; ++i) gradients.push_back(at::randn({8, 20}));
    wanted += at::stack(gradients).mean(0);
    taken += replicas.step(gradients);
  }
  const at::Tensor left =
      (error_of(replicas[0]) + error_of(replicas[1]) + error_of(replicas[2])) / 3;
  EXPECT_GT(powersgd_length_of(left), 1);
  // Roundings: of mean, error, product, both sums and what is left.
  EXPECT_LT((wanted - taken - left).abs().max().item<double>(), tolerance::telescoped32(25, 6, 20));
}

TEST(PowerSgd, ComesCloserToAGradientThatStays) {
  at::manual_seed(4);
  const at::Tensor m = at::randn({9, 24});
  PowerSgd replica({9, 24}, 2, 1, "w");
  at::Tensor sum = at::zeros_like(m);
  const int steps = 200;
  for (int step = 0; step < steps; ++step)
    sum += replica.approximation(replica.right(replica.left(m)));
  EXPECT_LT(powersgd_length_of(sum / steps - m), 0.1 * powersgd_length_of(m));
}

TEST(PowerSgd, LeavesAloneWhatFactorsWouldNotMakeSmaller) {
  EXPECT_FALSE(PowerSgd({64}, 2, 0, "bias").compresses());
  EXPECT_FALSE(PowerSgd({4, 4}, 2, 0, "w").compresses());
  EXPECT_FALSE(PowerSgd({4, 0}, 2, 0, "w").compresses());
  EXPECT_TRUE(PowerSgd({5, 20}, 3, 0, "w").compresses());
}

TEST(PowerSgd, GoesOnFromItsStateAndRefusesOthers) {
  at::manual_seed(5);
  PowerSgd one({6, 14}, 2, 1, "w"), other({6, 14}, 2, 9, "w"), wrong({6, 15}, 2, 1, "w");
  one.approximation(one.right(one.left(at::randn({6, 14}))));
  other.restore(one.state());
  EXPECT_THROW(wrong.restore(one.state()), Error);
  const at::Tensor m = at::randn({6, 14});
  EXPECT_TRUE(one.left(m).equal(other.left(m)));
}

TEST(PowerSgd, ForgetsAGradientThatOverflowed) {
  at::manual_seed(6);
  PowerSgd replica({6, 14}, 2, 1, "w");
  at::Tensor broken = at::randn({6, 14});
  broken[2][3] = INFINITY;
  EXPECT_FALSE(
      replica.approximation(replica.right(replica.left(broken))).isfinite().all().item<bool>());
  EXPECT_TRUE(replica.approximation(replica.right(replica.left(at::randn({6, 14}))))
                  .isfinite()
                  .all()
                  .item<bool>());
}

}  // namespace
}  // namespace pipewright::testing
