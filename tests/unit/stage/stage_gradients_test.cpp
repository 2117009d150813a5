// SPDX-License-Identifier: Apache-2.0
// Gradients as layers may make them: shared by parameters and inputs, absent, or their own affair.
#include <torch/csrc/autograd/custom_function.h>

#include "tests/unit/stage/stage_fixture.h"

namespace pipewright::test {
namespace {

using StageGradients = StageTest;

/// A layer with parameters of three numbers each.
class Formula final : public Layer {
 public:
  using Function = std::function<at::Tensor(const at::Tensor&, std::span<const at::Tensor>)>;
  Formula(int parameters, Function function)
      : parameters_(parameters), function_(std::move(function)) {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int i = 0; i < parameters_; ++i)
      specs.push_back({concat("p", i), {3}, {Initializer::Kind::Constant, 1.0 + i}});
    return specs;
  }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    return function_(input, parameters);
  }

 private:
  int parameters_;
  Function function_;
};

LayerPtr formula(int parameters, Formula::Function function) {
  return std::make_shared<Formula>(parameters, std::move(function));
}

/// x · the first of p, which learns nothing from it.
struct Scaled : torch::autograd::Function<Scaled> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x,
                            const at::Tensor& p) {
    return x * p[0];
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0] * 2, at::Tensor()};
  }
};

constexpr int kPasses = 3;

at::Tensor gradient_of(int id) {
  return random({3}, 20 + static_cast<std::uint64_t>(id));
}

/// Forward and backward of `kPasses` micro-batches of one sample, all inputs' gradients kept.
std::vector<Tensors> train(Stage& stage, double scale = 1) {
  std::vector<Tensors> of_inputs;
  for (int id = 0; id < kPasses; ++id) {
    stage.forward(id, {random({3}, static_cast<std::uint64_t>(id))}, {}, true);
    of_inputs.push_back(stage.backward(
        id, {.gradients = {gradient_of(id)}, .scale = scale, .input_gradient = true}));
  }
  return of_inputs;
}

at::Tensor sum_of_gradients() {
  at::Tensor sum = gradient_of(0);
  for (int id = 1; id < kPasses; ++id) sum = sum + gradient_of(id);
  return sum;
}

TEST_F(StageGradients, MayBeOneTensorForTwoParametersAndTheInput) {
  Stage s = stage({formula(
      2, [](const at::Tensor& x, std::span<const at::Tensor> p) { return x + p[0] + p[1]; })});
  const std::vector<Tensors> of_inputs = train(s);
  for (const at::Tensor& gradient : s.gradients())
    EXPECT_TRUE(at::equal(gradient, sum_of_gradients()));
  for (int id = 0; id < kPasses; ++id)
    EXPECT_TRUE(at::equal(of_inputs[static_cast<std::size_t>(id)][0], gradient_of(id)));
}

TEST_F(StageGradients, MayBeAbsent) {
  for (const double scale : {1.0, 0.5}) {
    Stage s = stage({formula(2, [](const at::Tensor& x, std::span<const at::Tensor> p) {
      return Scaled::apply(x * p[0], p[1]);
    })});
    train(s, scale);
    EXPECT_TRUE(s.gradients()[0].defined());
    EXPECT_FALSE(s.gradients()[1].defined());
    s.update(false, 0.1);
    EXPECT_TRUE(at::equal(value(s, "0.p1"), at::full({3}, 2.0, at::kDouble)));
  }
}

TEST_F(StageGradients, AreNotThoseALayerAsksForInItsForward) {
  Stage s = stage({formula(1, [](const at::Tensor& x, std::span<const at::Tensor> p) {
    const auto inner = torch::autograd::grad({(p[0] * p[0]).sum()}, {p[0]}, {}, true, true);
    return x * inner[0];  // x · 2p
  })});
  train(s);
  at::Tensor expected = at::zeros({3}, at::kDouble);
  for (int id = 0; id < kPasses; ++id)
    expected += 2 * random({3}, static_cast<std::uint64_t>(id)) * gradient_of(id);
  EXPECT_LT(relative_error(s.gradients()[0], expected), kFloat64Relative);
}

/// The gradients of a wide layer after `kPasses` micro-batches of 5 rows, and where their sum lies
/// after each of them.
struct WideSums {
  std::vector<at::Tensor> gradients;
  std::vector<const void*> places;
};

WideSums wide_sums(Stage s, int microbatches, double scale) {
  WideSums sums;
  for (int id = 0; id < kPasses; ++id) {
    const auto seed = static_cast<std::uint64_t>(id);
    s.forward(id, {random({5, 260}, seed).to(at::kFloat)}, {.microbatches = microbatches}, true);
    s.backward(id, {.gradients = {random({5, 270}, 30 + seed).to(at::kFloat)}, .scale = scale});
    sums.places.push_back(s.gradients()[0].const_data_ptr());
  }
  sums.gradients = s.gradients();
  return sums;
}

class WideStageGradients : public StageTest {
 protected:
  Stage wide_stage() const {
    return Stage({.layers = named({linear(260, 270, {})}),
                  .options = at::kFloat,
                  .optimizer = optimizer_.get(),
                  .loss = loss_.get()},
                 1);
  }
};

TEST_F(WideStageGradients, AreAddedInsideTheProduct) {
  for (const double scale : {1.0, 0.5}) {
    const auto sums = [&](int microbatches) {
      return wide_sums(wide_stage(), microbatches, scale);
    };
    const WideSums within = sums(kPasses), after = sums(1);
    EXPECT_EQ(within.places[1], within.places[0]) << "a second term was made by itself";
    EXPECT_EQ(within.places[2], within.places[0]);
    EXPECT_NE(after.places[1], after.places[0]) << "the two ways are one";
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(at::equal(within.gradients[i], after.gradients[i])) << scale;
  }
}

/// A sum that somebody else reads must stay as it is.
TEST_F(WideStageGradients, AreNotAddedToMemoryOfOthers) {
  Stage s = wide_stage();
  const auto pass = [&](int id) {
    s.forward(id, {random({5, 260}, 1).to(at::kFloat)}, {.microbatches = 2}, true);
    s.backward(id, {.gradients = {random({5, 270}, 2).to(at::kFloat)}});
  };
  pass(0);
  const at::Tensor others = s.gradients()[0].view({-1});
  const at::Tensor before = others.clone();
  pass(1);
  EXPECT_TRUE(at::equal(others, before));
  EXPECT_TRUE(at::equal(s.gradients()[0].view({-1}), 2 * before));
}

}  // namespace
}  // namespace pipewright::test
