// SPDX-License-Identifier: Apache-2.0
// The quadratic problem: its gradient is H·w, whatever H is made of and wherever it is cut.
#include <gtest/gtest.h>

#include "core/stage/stage.h"
#include "core/tensors/torch.h"
#include "models/parts/quadratic_form.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// Sums of n products, for each of which A has been rounded a few times as often.
double rounding(std::int64_t n) {
  return tolerance::rounded64(16 * static_cast<double>(n));
}

/// The loss of each sample at these weights, through all layers.
at::Tensor loss_at(const Model& model, const at::Tensor& x, const std::vector<at::Tensor>& w) {
  const auto layers = model.layers();
  Tensors values{x};
  for (std::size_t k = 0; k < layers.size(); ++k)
    values = layers[k]->forward_all(values, std::span(&w[k], 1), {}, {});
  EXPECT_EQ(values.size(), 1u);
  return values[0];
}

struct Computed {
  at::Tensor loss, gradient;
};

/// f and its gradient at w, by autograd through the layers.
Computed computed(const Model& model, const at::Tensor& w, const at::Tensor& x) {
  const auto count = static_cast<std::int64_t>(model.layers().size());
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& part : w.chunk(count))
    leaves.push_back(part.detach().clone().set_requires_grad(true));
  const at::Tensor loss = loss_at(model, x, leaves).mean();
  return {loss.detach(), at::cat(torch::autograd::grad({loss}, leaves))};
}

/// H, column by column, as the model's gradients say.
at::Tensor hessian_of(const Model& model) {
  const std::int64_t n = model.input_shape()[0];
  std::vector<at::Tensor> columns;
  for (std::int64_t i = 0; i < n; ++i)
    columns.push_back(
        computed(model, at::eye(n, at::kDouble)[i], at::zeros({1, n}, at::kDouble)).gradient);
  return at::stack(columns, 1);
}

void expect_near(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  EXPECT_LE((a - b).abs().max().item<double>(), tolerance) << a << "\n" << b;
}

TEST(QuadraticModel, HasWidthParametersInEachLayerAndGivesALoss) {
  const auto model = make_model("quadratic", "{layers: 3, width: 2}");
  EXPECT_EQ(parameter_counts(*model), (Counts{2, 2, 2}));
  EXPECT_EQ(layer_names(*model), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(model->input_shape(), (Shape{6}));
  EXPECT_EQ(boundary_shapes(*model), (std::vector<Shape>{{6}, {6}, {1}}));
  EXPECT_EQ(model->head(0), nullptr);
}

TEST(QuadraticModel, HasTheGivenEigenvaluesOnItsAxes) {
  const auto model = make_model("quadratic", "{layers: 2, width: 2, spectrum: [3, 0.5, 0, 7]}");
  expect_near(hessian_of(*model), at::diag(at::tensor({3.0, 0.5, 0.0, 7.0}, at::kDouble)),
              7 * rounding(4));
}

TEST(QuadraticModel, HasTheGivenEigenvaluesInARandomBasis) {
  const auto model =
      make_model("quadratic", "{layers: 3, width: 2, spectrum: [1, 2, 3, 4, 5, 6], coupled: true}");
  const at::Tensor h = hessian_of(*model);
  expect_near(at::linalg_eigvalsh(h), at::arange(1, 7, at::kDouble), 6 * rounding(36));
  EXPECT_GT((h - at::diag(h.diag())).abs().max().item<double>(), 0.1) << "layers are coupled";
  const auto other = make_model(
      "quadratic", "{layers: 3, width: 2, spectrum: [1, 2, 3, 4, 5, 6], coupled: true, seed: 1}");
  EXPECT_GT((h - hessian_of(*other)).abs().max().item<double>(), 0.1) << "another seed";
}

TEST(QuadraticModel, HasTheGivenHessian) {
  const auto model = make_model("quadratic",
                                "{layers: 4, hessian: [[2, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 1], "
                                "[0, 0, 1, 2]]}");
  const at::Tensor ones = at::ones({3}, at::kDouble);
  expect_near(hessian_of(*model),
              2 * at::eye(4, at::kDouble) + at::diag(ones, 1) + at::diag(ones, -1),
              2 * rounding(4));
}

TEST(QuadraticModel, TakesASingularHessian) {
  const auto model =
      make_model("quadratic", "{layers: 3, hessian: [[1, 1, 0], [1, 1, 0], [0, 0, 0]]}");
  at::Tensor h = at::zeros({3, 3}, at::kDouble);
  h.slice(0, 0, 2).slice(1, 0, 2).fill_(1);
  expect_near(hessian_of(*model), h, rounding(3));
}

TEST(QuadraticModel, IsHalfTheSquaredDistanceToTheTargets) {
  const auto model = make_model("quadratic",
                                "{layers: 2, width: 3, coupled: true, spectrum: "
                                "{largest: 4, smallest: 0.1}}");
  const at::Tensor w = random({6}, 1), x = random({5, 6}, 2), h = hessian_of(*model);
  const Computed at_zero = computed(*model, w, at::zeros({5, 6}, at::kDouble));
  const double size = 4 * w.square().sum().item<double>() + x.square().sum().item<double>();
  expect_near(at_zero.loss, 0.5 * w.dot(h.mv(w)), size * rounding(36));
  expect_near(at_zero.gradient, h.mv(w), size * rounding(36));
  // With x the optimum moves and the curvature stays: f(w; x) + f(−w; −x) = 2 f, and so on.
  const Computed plus = computed(*model, w, x), minus = computed(*model, -w, x);
  expect_near(0.5 * (plus.gradient - minus.gradient), h.mv(w), size * rounding(36));
  expect_near(0.5 * (plus.loss + minus.loss), at_zero.loss + 0.5 * x.square().sum(1).mean(),
              size * rounding(36));
}

TEST(QuadraticModel, DrawsEigenvaluesBetweenTheLargestAndTheSmallest) {
  const auto spectrum = [](const std::string& seed) {
    return hessian_of(*make_model("quadratic",
                                  "{layers: 8, width: 8, spectrum: {largest: 100, "
                                  "smallest: 0.01, seed: " +
                                      seed + "}}"))
        .diag();
  };
  const at::Tensor drawn = spectrum("3");
  EXPECT_NEAR(drawn[0].item<double>(), 100, 100 * rounding(64));
  EXPECT_NEAR(drawn[63].item<double>(), 0.01, rounding(64));
  EXPECT_LE(drawn.max().item<double>(), 100 * (1 + rounding(64)));
  EXPECT_GE(drawn.min().item<double>(), 0.01 * (1 - rounding(64)));
  // The logarithms are uniform over ln 10⁴: their mean is 0, with variance (ln 10⁴)²/12.
  const double range = std::log(1e4);
  EXPECT_NEAR(drawn.slice(0, 1, 63).log().mean().item<double>(), 0,
              tolerance::mean_of(62, range * range / 12));
  EXPECT_FALSE(drawn.equal(spectrum("4")));
}

TEST(QuadraticModel, ComputesInFloat32) {
  const auto model = make_model("quadratic", "{layers: 2, hessian: [[2, 1], [1, 2]]}");
  std::vector<at::Tensor> leaves;
  for (int k = 0; k < 2; ++k)
    leaves.push_back(at::full({1}, 1.0 + k, at::kFloat).set_requires_grad(true));
  const at::Tensor loss = loss_at(*model, at::zeros({1, 2}, at::kFloat), leaves).mean();
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  const at::Tensor gradient = at::cat(torch::autograd::grad({loss}, leaves));
  EXPECT_LE(relative_error(gradient, at::tensor({4, 5}, at::kFloat)), tolerance::rounded32(16));
}

/// One layer of curvature λ = 2 with Δ = 3, whose weight is 5 in the forward and 7 in the backward.
TEST(QuadraticModel, AddsTheDiscrepancyBetweenForwardAndBackwardWeights) {
  for (const char* layers : {"layers: 1, spectrum: [2]", "layers: 3, spectrum: [2, 2, 2]"}) {
    const auto model = make_model("quadratic", concat("{", layers, ", discrepancy: 3}"));
    const std::vector<LayerPtr> all = model->layers();
    WeightStore store(flat_layout(parameter_shapes(all), 8), at::kDouble);
    at::Tensor(store.version({0, 0, 0})).fill_(5);
    at::Tensor(store.advance(false).to).fill_(7);
    store.install({0, 0, 0});
    Tensors values{at::zeros({4, std::ssize(all)}, at::kDouble)};
    for (std::size_t k = 0; k < all.size(); ++k)
      values = all[k]->forward_all(values, store.leaves().subspan(k, 1), {}, {});
    const std::vector<at::Tensor> leaves(store.leaves().begin(), store.leaves().end());
    EXPECT_NEAR(values[0].mean().item<double>(), 25.0 * static_cast<double>(all.size()),
                75 * rounding(3));
    store.install({1, 0, 0});
    // As a micro-batch of a mini-batch with three: its loss has a part of 1/3.
    const at::Tensor share = at::scalar_tensor(1.0 / 3, at::kDouble);
    for (const at::Tensor& gradient : torch::autograd::grad({values[0].mean()}, leaves, {share}))
      EXPECT_NEAR(gradient.item<double>(), (2 * 5 + 3 * (5 - 7)) / 3.0, 10 * rounding(16));
  }
}

TEST(QuadraticModel, HasNoDiscrepancyBetweenEqualWeights) {
  const at::Tensor w = random({3}, 1), x = at::zeros({2, 3}, at::kDouble);
  const Computed with = computed(*make_model("quadratic", "{layers: 3, discrepancy: 9}"), w, x);
  const Computed without = computed(*make_model("quadratic", "{layers: 3}"), w, x);
  EXPECT_TRUE(with.gradient.equal(without.gradient));
  EXPECT_TRUE(with.loss.equal(without.loss));
}

TEST(QuadraticForm, IsRefusedToAMatrixWithANegativeEigenvalue) {
  const auto refused = [](std::vector<double> values) {
    FormMatrix matrix(2);
    matrix.values = std::move(values);
    return !form_of_hessian(matrix);
  };
  EXPECT_TRUE(refused({0, 1, 1, 0}));
  EXPECT_TRUE(refused({1, 2, 2, 1}));
  EXPECT_TRUE(refused({1, 0, 0, -1e-9}));
  EXPECT_FALSE(refused({0, 0, 0, 0}));
  EXPECT_FALSE(refused({1, 1, 1, 1}));
}

struct Wrong {
  const char *options, *problem;
};
constexpr Wrong kWrong[] = {
    {"{layers: 0}", "layers is 0; expected a whole number from 1 to 1024"},
    {"{layers: 100, width: 11}", "width is 11, which makes 1100 parameters of 100 layers"},
    {"{spectrum: [1, 2]}", "spectrum has 2 numbers; expected 4: layers x width"},
    {"{spectrum: []}", "spectrum has 0 numbers; expected 4"},
    {"{spectrum: [1, 2, -3, 4]}", "spectrum[2] is -3; expected a number of at least 0"},
    {"{spectrum: [1, 2, x, 4]}", "spectrum[2] is 'x'"},
    {"{spectrum: 3}", "spectrum is 3; expected a list of numbers"},
    {"{spectrum: {largest: 1, smallest: 2}}", "smallest is 2; expected at most the largest"},
    {"{spectrum: {largest: -1}}", "spectrum.largest is -1"},
    {"{spectrum: {bigest: 1}}", "unknown option 'model.spectrum.bigest'"},
    {"{hessian: 2}", "hessian is 2; expected a list of rows"},
    {"{hessian: [[1]]}", "hessian has 1 row; expected 4: layers x width"},
    {"{layers: 2, hessian: [[1, 0], 1]}", "hessian[1] is 1; expected a list of 2 numbers"},
    {"{layers: 2, hessian: [[1, 0], [1]]}", "hessian[1] has 1 number; expected 2"},
    {"{layers: 2, hessian: [[1, 0], [0, x]]}", "hessian[1] has 'x'; expected numbers only"},
    {"{layers: 2, hessian: [[1, 2], [3, 4]]}", "expected a symmetric matrix"},
    {"{layers: 2, hessian: [[1, 2], [2, 1]]}", "hessian has a negative eigenvalue"},
    {"{layers: 2, hessian: [[1, 0], [0, 1]], spectrum: [1, 1]}", "besides a hessian"},
    {"{layers: 2, hessian: [[1, 0], [0, 1]], coupled: true}", "coupled is true, but a hessian"},
    {"{start: twos}", "start is 'twos'; expected ones or normal"},
};

TEST(QuadraticModel, RefusesWhatIsNoQuadraticWithOneLine) {
  for (const Wrong& wrong : kWrong) {
    const std::string problems = model_problems("quadratic", wrong.options);
    EXPECT_NE(problems.find(wrong.problem), std::string::npos) << problems;
    EXPECT_LE(std::ranges::count(problems, '\n'), 1) << problems;
  }
}

TEST(QuadraticModel, ReadsItsOwnResolvedOptions) {
  for (const char* text : {"{}", "{spectrum: {largest: 2}}", "{spectrum: [1, 2, 3, 4]}",
                           "{layers: 1, hessian: [[2]]}", "{coupled: true, seed: 3}"}) {
    const Value document = parse_yaml(text, "test");
    Problems problems;
    Options options(&document, "model", problems);
    Registry<Model>::instance().find("quadratic")->make(options);
    options.finish();
    ASSERT_TRUE(problems.empty()) << text;
    const Value resolved = options.resolved();
    Options again(&resolved, "model", problems);
    Registry<Model>::instance().find("quadratic")->make(again);
    again.finish();
    EXPECT_TRUE(problems.empty()) << to_yaml(resolved);
    EXPECT_EQ(again.resolved(), resolved) << text;
  }
}

}  // namespace
}  // namespace pipewright::test
