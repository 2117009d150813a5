// SPDX-License-Identifier: Apache-2.0
// Additive attention against its formulas, with the weights of forward and backward apart, and what
// padding and going on token by token must not change.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/nn/incremental.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

constexpr std::uint64_t kGradSeed = 99;
constexpr std::int64_t kWidth = 3;
const std::vector<std::int64_t> kLengths{4, 1, 3};

/// Of the queries, or of the memory, with the other fixed.
class Context final : public Layer {
 public:
  Context(at::Tensor queries, at::Tensor memory)
      : queries_(std::move(queries)), memory_(std::move(memory)) {}
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const Tensors inputs{queries_.defined() ? queries_ : input, memory_.defined() ? memory_ : input,
                         at::tensor(kLengths)};
    return inner_->forward_all(inputs, parameters, buffers, pass)[1];
  }

 private:
  LayerPtr inner_ = additive_attention(kWidth);
  at::Tensor queries_, memory_;
};

/// One sample after another, its real memory only.
struct Reference {
  at::Tensor context, g_queries, g_memory;
  std::vector<at::Tensor> g_parameters;
};

Reference reference(const at::Tensor& queries, const at::Tensor& memory,
                    const std::vector<at::Tensor>& f, const std::vector<at::Tensor>& b) {
  const std::int64_t places = queries.size(1);
  Reference r{.context = at::zeros_like(queries),
              .g_queries = at::zeros_like(queries),
              .g_memory = at::zeros_like(memory)};
  for (const at::Tensor& parameter : f) r.g_parameters.push_back(at::zeros_like(parameter));
  const at::Tensor g_all = grad_output(queries, kGradSeed);
  const double norm = std::sqrt((f[2] * f[2]).sum().item<double>());
  double g_norm = 0;
  for (std::int64_t s = 0; s < queries.size(0); ++s) {
    const std::int64_t length = kLengths[static_cast<std::size_t>(s)];
    const at::Tensor q = queries[s], m = memory[s].narrow(0, 0, length);
    const at::Tensor zero = at::zeros({kWidth}, at::kDouble);
    const at::Tensor wq = linear_reference(q, f[0], zero), wk = linear_reference(m, f[1], zero);
    at::Tensor g_wk = at::zeros_like(wk);
    for (std::int64_t t = 0; t < places; ++t) {
      const at::Tensor u = 1 - 2 / ((2 * (wk + wq[t] + f[4])).exp() + 1);  // [length, width]
      const at::Tensor raw = (u * f[2]).sum(1);
      const at::Tensor exponentials = (raw * f[3] / norm).exp();
      const at::Tensor shares = exponentials / exponentials.sum();
      r.context[s][t].copy_((shares.unsqueeze(1) * m).sum(0));

      const at::Tensor g = g_all[s][t];
      r.g_memory[s].narrow(0, 0, length) += shares.unsqueeze(1) * g;
      const at::Tensor g_shares = (m * g).sum(1);
      const at::Tensor g_scores = shares * (g_shares - (g_shares * shares).sum());
      // The product with a and g sees the backward's; the quotient by |a| is the forward's.
      const at::Tensor g_raw = g_scores * b[3] / norm;
      r.g_parameters[3] += (g_scores * raw).sum() / norm;
      g_norm -= (g_scores * raw * f[3]).sum().item<double>() / (norm * norm);
      r.g_parameters[2] += (g_raw.unsqueeze(1) * u).sum(0);
      const at::Tensor g_u = g_raw.unsqueeze(1) * b[2] * (1 - u * u);
      r.g_parameters[4] += g_u.sum(0);
      r.g_parameters[0] += g_u.sum(0).unsqueeze(1) * q[t];
      r.g_queries[s][t] += product_reference(g_u.sum(0).unsqueeze(0), b[0])[0];
      g_wk += g_u;
    }
    r.g_parameters[1] += product_reference(g_wk.t(), m);
    r.g_memory[s].narrow(0, 0, length) += product_reference(g_wk, b[1]);
  }
  r.g_parameters[2] += g_norm * b[2] / norm;
  return r;
}

struct Case {
  at::Tensor queries = random({3, 5, kWidth}, 3), memory = random({3, 4, kWidth}, 4);
  std::vector<at::Tensor> f = random_parameters(*additive_attention(kWidth), 1),
                          b = random_parameters(*additive_attention(kWidth), 2);
};

TEST(ForwardAndBackwardWeights, AdditiveAttention) {
  const Case c;
  const Reference expected = reference(c.queries, c.memory, c.f, c.b);
  const Gradients by_queries = gradients(Context({}, c.memory), c.queries, c.f, c.b, kGradSeed);
  const Gradients by_memory = gradients(Context(c.queries, {}), c.memory, c.f, c.b, kGradSeed);
  EXPECT_LT(relative_error(by_queries.output, expected.context), kFloat64Relative);
  EXPECT_LT(relative_error(by_queries.input, expected.g_queries), kFloat64Relative);
  EXPECT_LT(relative_error(by_memory.input, expected.g_memory), kFloat64Relative);
  ASSERT_EQ(by_queries.parameters.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_LT(relative_error(by_queries.parameters[i], expected.g_parameters[i]), kFloat64Relative)
        << "parameter " << i;
}

TEST(AdditiveAttention, StartsAsPublished) {
  const auto specs = additive_attention(1024)->parameters();
  std::int64_t count = 0;
  for (const ParameterSpec& spec : specs) {
    std::int64_t product = 1;
    for (const std::int64_t extent : spec.shape) product *= extent;
    count += product;
  }
  EXPECT_EQ(count, 2'099'201);
  for (std::size_t i : {0, 1, 2}) {
    EXPECT_EQ(static_cast<int>(specs[i].init.kind), static_cast<int>(Initializer::Kind::Uniform));
    EXPECT_DOUBLE_EQ(specs[i].init.a, 1.0 / 32) << specs[i].name;
  }
  EXPECT_DOUBLE_EQ(specs[3].init.a, 1.0 / 32);
  EXPECT_DOUBLE_EQ(specs[4].init.a, 0);
}

TEST(AdditiveAttention, SeesNothingBeyondASamplesLength) {
  const Case c;
  const at::Tensor wide = at::cat({c.memory, 1000 * random({3, 2, kWidth}, 5)}, 1);
  at::Tensor other = c.memory.clone();
  other[1].narrow(0, 1, 3).fill_(1000);
  const at::Tensor y = apply(Context({}, c.memory), c.queries, c.f);
  EXPECT_LT(relative_error(apply(Context({}, wide), c.queries, c.f), y), kFloat64Relative);
  EXPECT_LT(relative_error(apply(Context({}, other), c.queries, c.f), y), kFloat64Relative);
}

TEST(AdditiveAttention, GoesOnWhereItStoppedAndGivesItsShares) {
  const Case c;
  const LayerPtr layer = additive_attention(kWidth);
  const auto& incremental = dynamic_cast<const Incremental&>(*layer);
  const at::Tensor lengths = at::tensor(kLengths);
  const at::Tensor whole = apply(Context({}, c.memory), c.queries, c.f);
  Carried carried;
  for (std::int64_t t = 0; t < 5; ++t) {
    const Tensors y =
        incremental.go_on({c.queries.narrow(1, t, 1), c.memory, lengths}, c.f, carried);
    EXPECT_LT(relative_error(y[1], whole.narrow(1, t, 1)), kFloat64Relative) << t;
    const at::Tensor mixed = (carried.attention.unsqueeze(2) * c.memory).sum(1);
    EXPECT_LT(relative_error(mixed, whole.select(1, t)), kFloat64Relative) << t;
  }
}

}  // namespace
}  // namespace pipewright::test
