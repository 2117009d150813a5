// SPDX-License-Identifier: Apache-2.0
// An optimizer's linear recurrence does what its updates and predictions do to one weight.
#include <gtest/gtest.h>

#include "core/base/as_size.h"
#include "core/stability/stage_map.h"
#include "core/tensors/torch.h"
#include "tests/unit/optim/optimizer_fixture.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

struct LinearCase {
  const char* name;
  const char* options;
  double divisor;  ///< of gradients; Adam's and RMSprop's is ε, which hides all else
};

const std::vector<LinearCase> kLinear{
    {"sgd", "{}", 1},
    {"sgd", "{weight_decay: 0.1}", 1},
    {"sgd", "{momentum: 0.9}", 1},
    {"sgd", "{momentum: 0.9, dampening: 0.3, weight_decay: 0.1}", 1},
    {"sgd", "{momentum: 0.8, nesterov: true, weight_decay: 0.1}", 1},
    {"adam", "{eps: 1.0e+14, betas: [0.8, 0.9]}", 1e14},
    {"adamw", "{eps: 1.0e+14, weight_decay: 5.0e-15}", 1e14},
    {"nadamw", "{eps: 1.0e+14, betas: [0.8, 0.9], momentum_decay: 10}", 1e14},
    {"nadamw", "{eps: 1.0e+14, weight_decay: 5.0e-15, momentum_decay: 10}", 1e14},
    {"rmsprop", "{eps: 1.0e+14}", 1e14},
    {"rmsprop", "{eps: 1.0e+14, momentum: 0.7}", 1e14},
};

double gradient_at(int step) {
  return std::sin(3.0 * step + 0.5);
}

/// One weight after so many steps that bias corrections are over, and its state beside it.
class Beside {
 public:
  explicit Beside(const LinearCase& of)
      : optimizer_(test::make_optimizer(of.name, of.options)),
        rule_(optimizer_->linear().value()),
        training_(*optimizer_, true, true, flat_layout({{"w", {1}}}, 8)),
        divisor_(of.divisor),
        lr_(0.1 * of.divisor) {
    constexpr int kBiasCorrections = 400;  // 0.9^400 = 5e-19
    while (steps_ < kBiasCorrections) optimizer_step();
    take_over();
  }

  void step() {
    const double g = optimizer_step();
    const UpdateMap update = update_map(rule_, lr_, 1, 1);
    StateRow next{};
    for (std::size_t r = 0; r < kStateParts; ++r) {
      next[r] = update.of_gradient[r] * lr_ * g / divisor_;
      for (std::size_t c = 0; c < kStateParts; ++c) next[r] += update.map[r][c] * state_[c];
    }
    state_ = next;
  }

  double weight() const { return training_.weights[0].item<double>(); }
  double linear_weight() const { return state_[kWeight]; }

  double predicted(const PredictionRule& rule, int steps) const {
    return training_.predicted(steps, rule, lr_)[0].item<double>();
  }
  double linearly_predicted(const PredictionRule& rule, int steps) const {
    const StateRow row = reading_row(rule_, lr_, rule, {.ahead = steps});
    double sum = 0;
    for (std::size_t i = 0; i < kStateParts; ++i) sum += row[i] * state_[i];
    return sum;
  }

 private:
  double optimizer_step() {
    const double g = gradient_at(steps_++);
    training_.step({at::full({1}, g, at::kDouble)}, lr_);
    return g;
  }

  /// The recurrence begins with the optimizer's own state.
  void take_over() {
    const bool of_rmsprop = rule_.preconditioned && rule_.dampening == 0;
    const std::size_t slot = of_rmsprop ? 1 : 0;
    const double divided = of_rmsprop ? 1 : divisor_;  // RMSprop's velocity is of what is divided
    state_ = {weight(), lr_ * training_.state.slots.at(slot)[0].item<double>() / divided,
              lr_ * training_.state.last_gradient[0].item<double>() / divisor_, 0};
  }

  std::unique_ptr<Optimizer> optimizer_;
  LinearRule rule_;
  test::Training training_;
  double divisor_, lr_;
  StateRow state_{};
  int steps_ = 0;
};

class LinearRules : public testing::TestWithParam<LinearCase> {};

TEST_P(LinearRules, DoWhatTheOptimizerDoes) {
  Beside beside(GetParam());
  for (int i = 0; i < 20; ++i) {
    beside.step();
    EXPECT_NEAR(beside.linear_weight(), beside.weight(), tolerance::kOptimizerSteps) << i;
  }
}

TEST_P(LinearRules, PredictWhatTheOptimizerPredicts) {
  using Kind = PredictionRule::Kind;
  Beside beside(GetParam());
  beside.step();
  for (const PredictionRule& rule :
       std::vector<PredictionRule>{{},
                                   {.weight_decay = true},
                                   {.kind = Kind::Geometric},
                                   {.kind = Kind::Lookahead},
                                   {.kind = Kind::Lookahead, .decay = 0}})
    for (const int steps : {-2, 1, 3})
      EXPECT_NEAR(beside.linearly_predicted(rule, steps), beside.predicted(rule, steps),
                  tolerance::kOptimizerSteps)
          << static_cast<int>(rule.kind) << ", " << steps;
}

INSTANTIATE_TEST_SUITE_P(Of, LinearRules, testing::ValuesIn(kLinear),
                         [](const auto& info) { return concat(info.param.name, "_", info.index); });

}  // namespace
}  // namespace pipewright
