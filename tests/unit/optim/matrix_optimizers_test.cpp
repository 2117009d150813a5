// SPDX-License-Identifier: Apache-2.0
// Optimizers that see a parameter of several dimensions as a matrix: their formulas, and what
// follows from them.
#include <cmath>

#include "tests/unit/optim/optimizer_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// One matrix, and a vector that is stepped beside it.
FlatLayout matrix_and_vector(std::int64_t rows, std::int64_t columns) {
  return flat_layout({{"m.weight", {rows, columns}}, {"m.bias", {rows}}}, 8);
}

/// UVᵀ of the singular value decomposition.
at::Tensor polar_factor(const at::Tensor& matrix) {
  const auto [u, s, v] = at::linalg_svd(matrix, /*full_matrices=*/false);
  return at::mm(u, v);
}

at::Tensor newton_schulz(const at::Tensor& matrix) {
  at::Tensor x = matrix / matrix.norm();
  for (int i = 0; i < 5; ++i) {
    const at::Tensor gram = at::matmul(x, x.t());
    x = 3.4445 * x + at::matmul(-4.7750 * gram + 2.0315 * at::matmul(gram, gram), x);
  }
  return x;
}

TEST(Muon, FollowsPyTorchButForItsRoundingToBfloat16) {
  for (const auto& [rows, columns] : {std::pair(3, 5), std::pair(5, 3), std::pair(4, 4)}) {
    const auto optimizer =
        make_optimizer("muon", "{momentum: 0.8, weight_decay: 0.5, adamw: {betas: [0.8, 0.9]}}");
    Training training(*optimizer, false, false, matrix_and_vector(rows, columns));
    at::Tensor w = training.part(training.weights, 0).clone(), b = at::zeros_like(w);
    for (std::uint64_t t = 1; t <= 5; ++t) {
      const at::Tensor g = training.gradients(t)[0];
      b = 0.8 * b + 0.2 * g;
      const at::Tensor ahead = 0.2 * g + 0.8 * b;
      w = w * (1 - 0.1 * 0.5) -
          0.1 * std::sqrt(std::max(1.0, double(rows) / columns)) * newton_schulz(ahead);
      training.step(training.gradients(t), 0.1);
    }
    expect_near(training.part(training.weights, 0), w, tolerance::kOptimizerSteps);
  }
}

/// With coefficients that converge, X ← 1.5X − 0.5XXᵀX, the iteration ends at the polar factor.
TEST(Muon, StepsAlongTheNearestOrthogonalMatrix) {
  for (const auto& [rows, columns] : {std::pair(3, 5), std::pair(5, 3)}) {
    const auto optimizer = make_optimizer(
        "muon",
        "{momentum: 0, weight_decay: 0, ns_coefficients: [1.5, -0.5, 0], ns_steps: 60, "
        "adjust_lr: match_rms_adamw}");
    Training training(*optimizer, true, false, matrix_and_vector(rows, columns));
    const at::Tensor before = training.part(training.weights, 0).clone();
    training.step(training.gradients(1), 0.1);
    expect_near(training.part(training.weights, 0),
                before - 0.1 * 0.2 * std::sqrt(5.0) * polar_factor(training.gradients(1)[0]),
                tolerance::kOptimizerSteps);
  }
}

TEST(Muon, DoesNotSeeTheGradientsLength) {
  const auto optimizer = make_optimizer("muon", "{momentum: 0}");
  Training one(*optimizer), large(*optimizer);
  one.step({one.gradients(1)[0], {}});
  large.step({1e6 * one.gradients(1)[0], {}});
  expect_near(one.weights, large.weights, tolerance::kOptimizerSteps);
}

TEST(Muon, StepsVectorsAndNamedLayersAsAdamWWithAFactor) {
  const auto muon = make_optimizer(
      "muon", "{weight_decay: 0.5, adamw: {betas: [0.8, 0.9], lr_factor: 0.25, layers: [m]}}");
  const auto adamw = make_optimizer("adamw", "{betas: [0.8, 0.9], weight_decay: 2}");
  Training a(*muon, false, false, matrix_and_vector(3, 5)),
      b(*adamw, false, false, matrix_and_vector(3, 5));
  for (std::uint64_t t = 1; t <= 5; ++t) {
    a.step(a.gradients(t), 0.1);
    b.step(b.gradients(t), 0.025);
  }
  expect_near(a.weights, b.weights, tolerance::kOptimizerSteps);
}

TEST(Muon, KeepsSquaresForVectorsOnly) {
  const auto optimizer = make_optimizer("muon", "{}");
  const FlatLayout layout = matrix_and_vector(3, 5);
  const OptimizerState state = fresh_state(*optimizer, layout, at::kDouble, false, false);
  ASSERT_EQ(state.tables.size(), 1U);
  EXPECT_FALSE(state.tables[0][0].defined());
  EXPECT_EQ(state.tables[0][1].sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(numbers_in_tables(*optimizer, layout, false), 3);
}

/// SOAP written with loops over t, from the paper's algorithm.
struct SoapByHand {
  double beta1 = 0.8, beta2 = 0.9, beta = 0.7, eps = 0.001, lr = 0.1, decay = 0.5;
  int every = 2;
  at::Tensor l, r, u, v, m, n;

  at::Tensor step(const at::Tensor& w, const at::Tensor& g, int t) {  // t counts from 0
    if (t == 0) {
      l = (1 - beta) * at::mm(g, g.t());
      r = (1 - beta) * at::mm(g.t(), g);
      u = std::get<1>(at::linalg_eigh(l));
      v = std::get<1>(at::linalg_eigh(r));
      m = at::zeros_like(g);
      n = at::zeros_like(g);
      return w;
    }
    const at::Tensor turned = u.t().mm(g).mm(v);
    m = beta1 * m + (1 - beta1) * turned;
    n = beta2 * n + (1 - beta2) * turned * turned;
    const double size = std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
    const at::Tensor next =
        (w - lr * size * u.mm(m / (n.sqrt() + eps)).mm(v.t())) * (1 - lr * decay);
    l = beta * l + (1 - beta) * at::mm(g, g.t());
    r = beta * r + (1 - beta) * at::mm(g.t(), g);
    if (t % every == 0) renew();
    return next;
  }

  static at::Tensor largest_first(const at::Tensor& matrix, const at::Tensor& basis) {
    return at::argsort(basis.t().mm(matrix).mm(basis).diagonal(), 0, true);
  }
  void renew() {
    const at::Tensor back = u.mm(m).mm(v.t());
    const at::Tensor rows = largest_first(l, u), columns = largest_first(r, v);
    n = n.index_select(0, rows).index_select(1, columns);
    u = std::get<0>(at::linalg_qr(l.mm(u).index_select(1, rows)));
    v = std::get<0>(at::linalg_qr(r.mm(v).index_select(1, columns)));
    m = u.t().mm(back).mm(v);
  }
};

/// The first gradient of a square matrix has full rank, so its eigenvectors are unique but for
/// signs, which cancel.
TEST(Soap, FollowsItsAuthors) {
  const auto optimizer =
      make_optimizer("soap",
                     "{betas: [0.8, 0.9], shampoo_beta: 0.7, eps: 0.001, weight_decay: 0.5, "
                     "precondition_frequency: 2}");
  Training training(*optimizer, false, false, matrix_and_vector(4, 4));
  SoapByHand by_hand;
  at::Tensor w = training.part(training.weights, 0).clone();
  for (int t = 0; t < 7; ++t) {
    const auto gradients = training.gradients(static_cast<std::uint64_t>(t) + 1);
    w = by_hand.step(w, gradients[0], t);
    training.step(gradients, 0.1);
  }
  expect_near(training.part(training.weights, 0), w, tolerance::kEigenbasis);
}

/// Without a basis it is Adam that leaves out the first gradient, with a decay after the step.
TEST(Soap, IsAdamWhereNoSideGetsABasis) {
  const auto soap =
      make_optimizer("soap", "{betas: [0.8, 0.9], weight_decay: 0, max_precond_dim: 0, eps: 0}");
  const auto adam = make_optimizer("adam", "{betas: [0.8, 0.9], eps: 0}");
  Training a(*soap), b(*adam);
  a.step(a.gradients(9));
  expect_near(a.weights, b.weights, tolerance::kPrediction);
  for (std::uint64_t t = 1; t <= 5; ++t) {
    a.step(a.gradients(t));
    b.step(b.gradients(t));
  }
  expect_near(a.weights, b.weights, tolerance::kOptimizerSteps);
}

/// Rotating the coordinates of a matrix rotates the whole training, which Adam's does not.
TEST(Soap, DoesNotSeeARotationOfTheCoordinates) {
  const auto [left, ignored] = at::linalg_qr(random({4, 4}, 7));
  const auto distance = [&, of = left](const std::string& name, const std::string& options) {
    const auto optimizer = make_optimizer(name, options);
    const FlatLayout layout = flat_layout({{"w", {4, 4}}}, 8);
    Training plain(*optimizer, false, false, layout), rotated(*optimizer, false, false, layout);
    rotated.part(rotated.weights, 0).copy_(of.mm(plain.part(plain.weights, 0)));
    for (std::uint64_t t = 1; t <= 6; ++t) {
      plain.step(plain.gradients(t), 0.1);
      rotated.step({of.mm(plain.gradients(t)[0])}, 0.1);
    }
    return (rotated.part(rotated.weights, 0) - of.mm(plain.part(plain.weights, 0)))
        .abs()
        .max()
        .item<double>();
  };
  EXPECT_LT(distance("soap", "{precondition_frequency: 2}"), tolerance::kEigenbasis);
  EXPECT_GT(distance("adam", "{}"), 0.01);
}

TEST(Soap, KeepsABasisForSidesThatAreNotTooLong) {
  const auto optimizer = make_optimizer("soap", "{max_precond_dim: 4}");
  const FlatLayout layout =
      flat_layout({{"c.weight", {4, 3, 2, 1}}, {"c.bias", {4}}, {"d.weight", {3, 4}}}, 8);
  const OptimizerState state = fresh_state(*optimizer, layout, at::kDouble, false, false);
  for (const std::size_t rows : {0, 2}) {  // of Shampoo's matrix, of the basis
    EXPECT_EQ(state.tables[rows][0].sizes(), at::IntArrayRef({4, 4}));
    EXPECT_FALSE(state.tables[rows + 1][0].defined());  // 3 · 2 · 1 columns
    EXPECT_FALSE(state.tables[rows][1].defined());
    EXPECT_EQ(state.tables[rows][2].sizes(), at::IntArrayRef({3, 3}));
    EXPECT_EQ(state.tables[rows + 1][2].sizes(), at::IntArrayRef({4, 4}));
  }
  EXPECT_EQ(numbers_in_tables(*optimizer, layout, false), 2 * (16 + 9 + 16));
}

/// The order of a convolution's weight in memory is no matter, nor that of its state.
TEST(OptimizersOfMatrices, StepAConvolutionAlikeInEitherMemoryFormat) {
  for (const auto& [name, options] : kOfMatrices) {
    const auto optimizer = make_optimizer(name, options);
    FlatLayout contiguous = flat_layout({{"c.weight", {4, 3, 2, 2}}}, 8), last = contiguous;
    last.entries[0].channels_last = true;
    Training a(*optimizer, false, false, contiguous), b(*optimizer, false, false, contiguous);
    b.layout = last;
    last.entries[0].view(b.weights).copy_(contiguous.entries[0].view(a.weights));
    for (std::uint64_t t = 1; t <= 4; ++t) {
      const at::Tensor g = a.gradients(t)[0];
      a.step({g});
      b.step({g.contiguous(at::MemoryFormat::ChannelsLast)});
    }
    expect_near(contiguous.entries[0].view(a.weights), last.entries[0].view(b.weights),
                tolerance::kEigenbasis, name + options);
  }
}

}  // namespace
}  // namespace pipewright::test
