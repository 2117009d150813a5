// SPDX-License-Identifier: Apache-2.0
// A prediction made in the pass of the step before it: the same bits as one after the other.
#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>

#include "tests/unit/optim/optimizer_fixture.h"

namespace pipewright::test {
namespace {

using FusedKind = PredictionRule::Kind;

/// Around the lengths of blocks, vectors and threads' parts, and never a multiple of any.
const std::vector<std::pair<std::string, std::vector<std::int64_t>>> kShapes{
    {"one", {1}}, {"less", {2047}}, {"more", {2049}}, {"matrix", {401, 257}}, {"bias", {3001}}};
constexpr std::size_t kWithoutGradient = 4;  ///< "bias", from the second step on

/// Sets the number of intra-op threads for a while.
class IntraOpThreads {
 public:
  explicit IntraOpThreads(int threads) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }
  ~IntraOpThreads() { at::set_num_threads(before_); }
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int before_;
};

/// Flat weights that are stepped and predicted, in one pass or two.
struct Flat {
  Flat(const Optimizer& with, at::ScalarType type)
      : optimizer(with),
        layout(flat_layout(kShapes, static_cast<std::int64_t>(c10::elementSize(type)))),
        state(fresh_state(with, layout, type, true, true)),
        weights(at::zeros({layout.size}, type)),
        ahead(at::zeros({layout.size}, type)) {
    for (const FlatLayout::Entry& entry : layout.entries)
      weights.narrow(0, entry.offset, entry.size).copy_(part_of(numbers(), entry));
  }

  static const at::Tensor& numbers() {
    static const at::Tensor all = random({200'000}, 1);
    return all;
  }
  static at::Tensor part_of(const at::Tensor& flat, const FlatLayout::Entry& entry) {
    return flat.narrow(0, entry.offset, entry.size);
  }

  std::vector<at::Tensor> gradients(std::uint64_t step) const {
    const at::Tensor turned = numbers().roll(static_cast<std::int64_t>(7 * (step + 1)));
    std::vector<at::Tensor> all;
    for (const FlatLayout::Entry& entry : layout.entries)
      all.push_back(part_of(turned, entry).to(weights.scalar_type()).view(entry.shape));
    if (step > 0) all[kWithoutGradient].reset();
    return all;
  }

  void advance(std::uint64_t t, const PredictionRule& rule, bool in_place, bool fused) {
    at::Tensor next = in_place ? weights : at::zeros_like(weights);
    const auto of = gradients(t);
    const OptimizerStep step{.layout = layout,
                             .gradients = of,
                             .weights = weights,
                             .next = next,
                             .state = state,
                             .lr = 0.1};
    const Prediction prediction{
        .weights = next, .ahead = ahead, .state = state, .rule = rule, .steps = 3, .lr = 0.07};
    if (fused) {
      step_and_predict(optimizer, step, prediction);
    } else {
      optimizer.step(step);
      predict(optimizer, prediction);
    }
    weights = next;
  }

  const Optimizer& optimizer;
  FlatLayout layout;
  OptimizerState state;
  at::Tensor weights, ahead;
};

/// Three steps, a prediction after each; whatever is remembered is compared after each.
void expect_same_bits(const Optimizer& optimizer, at::ScalarType type, const PredictionRule& rule,
                      bool in_place, const std::string& what) {
  Flat fused(optimizer, type), separate(optimizer, type);
  for (std::uint64_t t = 0; t < 3; ++t) {
    fused.advance(t, rule, in_place, true);
    separate.advance(t, rule, in_place, false);
    EXPECT_TRUE(at::equal(fused.weights, separate.weights)) << what << ": weights, step " << t;
    EXPECT_TRUE(at::equal(fused.ahead, separate.ahead)) << what << ": prediction, step " << t;
    EXPECT_TRUE(at::equal(fused.state.last_gradient, separate.state.last_gradient)) << what;
    for (std::size_t s = 0; s < fused.state.slots.size(); ++s)
      EXPECT_TRUE(at::equal(fused.state.slots[s], separate.state.slots[s])) << what;
    EXPECT_EQ(fused.state.steps, static_cast<std::int64_t>(t) + 1) << what;
    const bool moves = t + 1 >= updates_to_move(what.substr(0, 4));
    if (moves && rule.kind != FusedKind::Geometric) {  // which is nothing without momentum
      EXPECT_FALSE(at::equal(fused.ahead, fused.weights)) << what << ": nothing is predicted";
    }
  }
}

std::vector<PredictionRule> rules_of(const std::string& optimizer) {
  if (optimizer == "sgd")
    return {{}, {.kind = FusedKind::Lookahead, .decay = 0.5}, {.kind = FusedKind::Geometric}};
  return {{}, {.weight_decay = true}};
}

void expect_same_bits_of_every_optimizer(at::ScalarType type, int threads) {
  const IntraOpThreads during(threads);
  for (const auto& [name, options] : kOptimizers)
    for (const PredictionRule& rule : rules_of(name))
      expect_same_bits(*make_optimizer(name, options), type, rule, threads == 1,
                       concat(name, options, ", rule ", static_cast<int>(rule.kind), ", ",
                              c10::toString(type), ", ", threads, " threads"));
}

TEST(FusedPrediction, HasTheBitsOfAStepAndAPredictionForEveryOptimizer) {
  expect_same_bits_of_every_optimizer(at::kFloat, 1);
}

TEST(FusedPrediction, HasThemInSeveralThreads) {
  expect_same_bits_of_every_optimizer(at::kFloat, 3);
}

TEST(FusedPrediction, HasThemInFloat64) {
  for (const int threads : {1, 3}) expect_same_bits_of_every_optimizer(at::kDouble, threads);
}

TEST(FusedPrediction, HasThemOverTensorsToo) {
  const IntraOpThreads during(1);
  for (const auto& [name, options] : kOptimizers)
    for (const PredictionRule& rule : rules_of(name))
      expect_same_bits(*make_optimizer_elsewhere(name, options), at::kDouble, rule, true,
                       name + options);
}

TEST(FusedPrediction, FollowsTheStepInBlocksThatACacheHolds) {
  for (const int threads : {1, 3}) {
    const IntraOpThreads during(threads);
    const auto optimizer = make_optimizer("sgd", "{momentum: 0.9}");
    Flat flat(*optimizer, at::kFloat);
    std::vector<FlatRange> made;
    std::mutex mutex;
    const auto gradients = flat.gradients(0);
    optimizer->step({.layout = flat.layout,
                     .gradients = gradients,
                     .weights = flat.weights,
                     .next = flat.weights,
                     .state = flat.state,
                     .made = [&](std::int64_t begin, std::int64_t end) {
                       const std::lock_guard lock(mutex);
                       made.push_back({begin, end});
                     }});
    std::ranges::sort(made, {}, &FlatRange::begin);
    auto next = made.begin();
    for (const FlatLayout::Entry& entry : flat.layout.entries) {
      std::int64_t at = entry.offset;
      for (; at < entry.offset + entry.size; at = next++->end) {
        ASSERT_NE(next, made.end());
        ASSERT_EQ(next->begin, at) << "each element once, gaps never";
        ASSERT_LE((next->end - next->begin) * 4 * 4, 32 << 10) << "four arrays of four bytes";
      }
      ASSERT_EQ(at, entry.offset + entry.size);
    }
    EXPECT_EQ(next, made.end());
  }
}

}  // namespace
}  // namespace pipewright::test
