// SPDX-License-Identifier: Apache-2.0
// Replicas that sum PowerSGD's factors instead of their gradients.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using Gradients = std::vector<at::Tensor>;

constexpr const char* kRankOne = "{name: powersgd, rank: 1}";

Stages trained(const std::string& changes, Execution execution = Execution::Serial) {
  Laboratory laboratory(changes);
  Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, execution);
  return stages;
}

std::string experiment(const std::string& layout, const std::string& compression) {
  return concat("{", layout, ", pipeline.gradient_compression: ", compression, "}");
}

TEST(GradientCompression, GivesTheSameBitsInBothExecutionsAndAllReplicas) {
  for (const char* layout :
       {"pipeline.stages: 1, pipeline.replicas: 2, scheme: {name: data_parallel}",
        "pipeline.stages: 1, pipeline.replicas: 3, scheme: {name: data_parallel}",
        "pipeline.stages: 2, pipeline.replicas: 2, scheme: {name: gpipe}",
        "pipeline.stages: 2, pipeline.replicas: 3, scheme: {name: pipedream}",
        "pipeline.stages: 2, pipeline.replicas: 2, scheme: {name: gpipe}, "
        "pipeline.microbatches: 2, train.precision: float64"}) {
    const Stages serial = trained(experiment(layout, kRankOne));
    const Stages threads = trained(experiment(layout, kRankOne), Execution::Threads);
    EXPECT_EQ(difference(serial, threads), "") << layout;
    EXPECT_NE(difference(serial, trained(experiment(layout, "{name: none}"))), "") << layout;
    const std::size_t stages = serial.back()->index() + 1;
    for (std::size_t i = stages; i < serial.size(); ++i)
      EXPECT_TRUE(at::equal(serial[i]->weights().latest(), serial[i % stages]->weights().latest()))
          << layout;
  }
}

/// Two linear layers a stage: 5·6 + 5 + 5·5 + 5 and 5·5 + 5 + 3·5 + 3 values. Of rank 1 every
/// weight [a, b] becomes a + b of them; of rank 2 2(a + b), but for the 3·5, which would be no
/// fewer.
TEST(GradientCompression, CountsTheBytesThatAreSummed) {
  struct Case {
    const char* compression;
    int first, second;
  };
  for (const auto& [compression, first, second] :
       {Case{"{name: none}", 65, 48}, Case{kRankOne, 11 + 10 + 10, 10 + 8 + 8},
        Case{"{name: powersgd, rank: 2}", 22 + 20 + 10, 20 + 15 + 8}})
    for (const int bytes : {4, 8})
      for (const Execution execution : {Execution::Serial, Execution::Threads}) {
        Laboratory laboratory(
            experiment(concat("pipeline.stages: 2, pipeline.replicas: 2, pipeline.microbatches: 2, "
                              "scheme: {name: gpipe}, train.precision: float",
                              8 * bytes),
                       compression));
        const Plan& plan = laboratory.plan();
        const RunResult result = train(plan, plan.stages(), execution);
        ASSERT_EQ(result.traffic.size(), 4u) << "there, back, and two stages' sums";
        for (int stage = 0; stage < 2; ++stage) {
          const EdgeTraffic& sums = result.traffic[static_cast<std::size_t>(2 + stage)];
          const int all = 6 * 2 * bytes;  // mini-batches, replicas
          EXPECT_EQ(sums, (EdgeTraffic{.from = stage,
                                       .to = stage,
                                       .messages = 6 * 2,
                                       .value_bytes = 1.0 * all * (stage == 0 ? 65 : 48),
                                       .sent_bytes = 1.0 * all * (stage == 0 ? first : second)}))
              << compression << " " << bytes;
        }
      }
}

constexpr const char* kTwo =
    "pipeline.stages: 1, pipeline.replicas: 2, scheme: {name: data_parallel}";

TEST(GradientCompression, ChangesNoBitWhereFactorsWouldNotBeSmaller) {
  EXPECT_EQ(difference(trained(experiment(kTwo, "{name: powersgd, rank: 100}")),
                       trained(experiment(kTwo, "{name: none}"))),
            "");
}

TEST(GradientCompression, DoesNothingWithOneReplica) {
  EXPECT_EQ(difference(trained(experiment("pipeline.stages: 2", kRankOne)),
                       trained("{pipeline.stages: 2}")),
            "");
}

/// The mean gradient of a linear layer over two samples has rank 2, so a rank of 2 loses nothing
/// but roundings.
TEST(GradientCompression, IsTheMeanWhereItsRankIsEnough) {
  const std::string pair = concat(kTwo, ", loader.batch_size: 2, dataset.train: 12");
  const Stages plain = trained(experiment(pair, "{name: none}")),
               enough = trained(experiment(pair, "{name: powersgd, rank: 2}")),
               less = trained(experiment(pair, kRankOne));
  const std::size_t all = state_of(plain).size();
  EXPECT_LT(distance(plain, enough, all), tolerance::kTrainedWithEnoughRank);
  EXPECT_NE(difference(plain, enough), "") << "nothing was compressed";
  EXPECT_GT(distance(plain, less, all), 1e-3);
}

/// Orthonormal columns, one after another.
at::Tensor gram_schmidt(const at::Tensor& x) {
  const at::Tensor q = x.clone();
  for (std::int64_t c = 0; c < q.size(1); ++c) {
    for (std::int64_t before = 0; before < c; ++before)
      q.select(1, c).sub_(q.select(1, before) * q.select(1, before).dot(q.select(1, c)));
    q.select(1, c).div_(q.select(1, c).norm());
  }
  return q;
}

/// Replicas' exchanges of one weight and one bias, summed by hand.
class Pair {
 public:
  explicit Pair(std::uint64_t seed = 7) {
    for (int r = 0; r < 2; ++r)
      each_.emplace_back(NamedShapes{{"w", {8, 12}}, {"b", {8}}}, 2, GradientCompression{2}, seed);
  }
  /// What both take as their gradients.
  Gradients step(std::vector<Gradients> of) {
    for (int round = 0;; ++round) {
      for (std::size_t r = 0; r < 2; ++r) each_[r].advance(round, of[r]);
      if (round == GradientExchange::kRounds) break;
      for (std::size_t i = 0; i < 2; ++i) {
        at::Tensor sum = of[0][i];
        if (of[1][i].defined()) sum = sum.defined() ? sum + of[1][i] : of[1][i];
        of[0][i] = of[1][i] = sum;
      }
    }
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(of[0][i].defined() ? of[0][i].equal(of[1][i]) : !of[1][i].defined());
    return of[0];
  }
  GradientExchange& operator[](std::size_t r) { return each_[r]; }
  at::Tensor state(std::size_t r, const std::string& wanted) const {
    for (const auto& [name, tensor] : each_[r].state())
      if (name == wanted) return tensor;
    ADD_FAILURE() << "no state " << wanted;
    return {};
  }

 private:
  std::vector<GradientExchange> each_;
};

/// Algorithm 1 and 2 of the paper in double, with workers of 3/4 and 1/4 of the samples: their mean
/// is that of the gradients times these, twice.
TEST(GradientExchange, IsPowerSgdOfTheWeightedMean) {
  at::manual_seed(1);
  Pair pair;
  const double share[] = {0.75, 0.25};
  at::Tensor q = pair.state(0, "w.q").to(at::kDouble);
  at::Tensor error[] = {at::zeros({8, 12}, at::kDouble), at::zeros({8, 12}, at::kDouble)};
  for (int step = 0; step < 2; ++step) {
    std::vector<Gradients> gradients;
    at::Tensor v[2];
    for (std::size_t r = 0; r < 2; ++r) {
      gradients.push_back({at::randn({8, 12}) * share[r], at::randn({8}) * share[r]});
      v[r] = 2 * gradients[r][0].to(at::kDouble) + error[r];
    }
    const at::Tensor bias = gradients[0][1] + gradients[1][1];
    const at::Tensor left = (v[0].matmul(q) + v[1].matmul(q)) / 2, p = gram_schmidt(left);
    const at::Tensor lengths = at::linalg_svdvals(left);
    const double condition = (lengths[0] / lengths[1]).item<double>();
    q = (v[0].t().matmul(p) + v[1].t().matmul(p)) / 2;
    const at::Tensor wanted = p.matmul(q.t());
    const Gradients taken = pair.step(gradients);
    const double near = tolerance::projected32(
        (step + 1) * (v[0].norm() + v[1].norm()).item<double>() / 2, 12, condition);
    EXPECT_LT((taken[0] - wanted).norm().item<double>(), near) << step;
    EXPECT_TRUE(taken[1].equal(bias));
    for (std::size_t r = 0; r < 2; ++r) {
      error[r] = v[r] - wanted;
      EXPECT_LT((pair.state(r, "w.error") - error[r]).norm().item<double>(), near) << step;
    }
  }
}

TEST(GradientExchange, LosesNothingInTheLongRun) {
  at::manual_seed(2);
  Pair pair;
  at::Tensor wanted = at::zeros({8, 12}), taken = at::zeros({8, 12});
  for (int step = 0; step < 20; ++step) {
    const Gradients a{at::randn({8, 12}), {}}, b{at::randn({8, 12}), {}};
    wanted += a[0] + b[0];
    taken += pair.step({a, b})[0];
  }
  const at::Tensor left = (pair.state(0, "w.error") + pair.state(1, "w.error")) / 2;
  EXPECT_GT(left.norm().item<double>(), 1);
  // Roundings: of two errors, two products, a mean, three sums.
  EXPECT_LT((wanted - taken - left).abs().max().item<double>(), tolerance::telescoped32(20, 8, 30));
}

TEST(GradientExchange, KeepsTheTypeOfGradients) {
  at::manual_seed(3);
  Pair one, two;
  const Gradients a{at::randn({8, 12}), at::randn({8})}, b{at::randn({8, 12}), at::randn({8})};
  const auto wide = [](const Gradients& g) {
    return Gradients{g[0].to(at::kDouble), g[1].to(at::kDouble)};
  };
  const Gradients narrow = one.step({a, b}), taken = two.step({wide(a), wide(b)});
  EXPECT_EQ(narrow[0].scalar_type(), at::kFloat);
  EXPECT_EQ(taken[0].scalar_type(), at::kDouble);
  EXPECT_TRUE(taken[0].equal(narrow[0].to(at::kDouble)));
  EXPECT_TRUE(taken[1].equal(wide(a)[1] + wide(b)[1]));
}

TEST(GradientExchange, LeavesUndefinedWhatNobodyHas) {
  Pair pair;
  const at::Tensor q = pair.state(0, "w.q");
  const Gradients taken = pair.step({{{}, {}}, {{}, {}}});
  EXPECT_FALSE(taken[0].defined());
  EXPECT_FALSE(taken[1].defined());
  EXPECT_TRUE(pair.state(0, "w.q").equal(q));
}

TEST(GradientExchange, CountsAMissingGradientAsZeros) {
  at::manual_seed(4);
  Pair missing, zeros;
  const at::Tensor g = at::randn({8, 12}), b = at::randn({8}), zero = at::zeros({8, 12});
  const at::Tensor taken = missing.step({{{}, {}}, {g, b}})[0];
  EXPECT_TRUE(taken.equal(zeros.step({{zero, {}}, {g, b}})[0]));
  // From now on the error of the first is not in P, but nothing of it is lost.
  at::Tensor sum = taken;
  for (int step = 0; step < 4; ++step) sum = sum + missing.step({{{}, {}}, {g, b}})[0];
  const at::Tensor left = (missing.state(0, "w.error") + missing.state(1, "w.error")) / 2;
  EXPECT_LT((5 * g - sum - left).abs().max().item<double>(), tolerance::telescoped32(5, 8, 20));
}

TEST(GradientExchange, GoesOnFromItsStateAndRefusesOthers) {
  at::manual_seed(5);
  Pair one, other(9);
  const auto random = [] { return Gradients{at::randn({8, 12}), at::randn({8})}; };
  one.step({random(), random()});
  for (std::size_t r = 0; r < 2; ++r) other[r].restore(one[r].state());
  const Gradients a = random(), b = random();
  EXPECT_TRUE(one.step({a, b})[0].equal(other.step({a, b})[0]));
  GradientExchange wrong({{"w", {8, 13}}}, 2, {2}, 7), stranger({{"u", {8, 12}}}, 2, {2}, 7);
  EXPECT_THROW(wrong.restore(one[0].state()), Error);
  EXPECT_THROW(stranger.restore(one[0].state()), Error);
}

}  // namespace
}  // namespace pipewright::test
