// SPDX-License-Identifier: Apache-2.0
// The decoder of options: counts, names, causality, what it refuses.
// tests/conformance/decoder_test.py compares it with transformers' Llama and GPT-2 and a plain
// module.
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/nn/layers.h"
#include "core/nn/layers/rotary.h"
#include "core/tensors/torch.h"
#include "tests/unit/models/text_model.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

TEST(Decoder, HasAsManyParametersAsItsPresetsOriginals) {
  EXPECT_EQ(total_parameters(*make_model("decoder", "{preset: slow_links}")), 203'828'352);
  // GPT-2's, and an output of its own.
  EXPECT_EQ(total_parameters(*make_model("decoder", "{preset: gpt2}")), 124'439'808 + 50'257 * 768);
  // TinyLlama's (Zhang et al., 2024): 1.1 billion.
  EXPECT_EQ(total_parameters(
                *make_model("decoder",
                            "{vocabulary: 32000, width: 2048, layers: 22, heads: 32, kv_heads: 4, "
                            "mlp_width: 5632}")),
            1'100'048'384);
  // Llama 2's 7 billion; its MLP is 8/3 of the width, up to a multiple of 256.
  EXPECT_EQ(total_parameters(
                *make_model("decoder", "{vocabulary: 32000, width: 4096, layers: 32, heads: 32}")),
            6'738'415'616);
}

TEST(Decoder, NamesParametersAsLlama) {
  using Names = std::vector<std::string>;
  const auto layers = make_model("decoder", "{layers: 2}")->layers();
  EXPECT_EQ(parameter_names(*layers[0]), Names{"embeddings.tokens.weight"});
  Names expected;
  for (const char* part : {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
                           "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    expected.push_back(concat("layers.1.", part, ".weight"));
  EXPECT_EQ(parameter_names(*layers[2]), expected);
  EXPECT_EQ(parameter_names(*layers[3]), Names{"norm.weight"});
  EXPECT_EQ(parameter_names(*layers[4]), Names{"lm_head.weight"});
}

TEST(Decoder, StartsWithoutWhatBlocksAddWhereAsked) {
  for (const LayerPtr& layer : make_model("decoder", "{preset: slow_links}")->layers())
    for (const ParameterSpec& spec : layer->parameters()) {
      const bool ends = spec.name.ends_with("o_proj.weight") ||
                        spec.name.ends_with("down_proj.weight") || spec.name.ends_with("bias");
      EXPECT_EQ(spec.init.a == 0, ends) << parameter_name(*layer, spec.name);
    }
}

TEST(Decoder, SeesNothingThatComesLater) {
  for (const char* preset : {"llama", "gpt2", "slow_links"}) {
    TextModel text("decoder",
                   concat("{preset: ", preset,
                          ", vocabulary: 11, tokens: 6, width: 8, heads: 2, layers: 2, zero_init: "
                          "false}"));
    const at::Tensor ids = text.ids(2, 6, 1);
    const at::Tensor before = text.outputs(ids, {});
    for (std::int64_t t = 0; t < 6; ++t) {
      at::Tensor changed = ids.clone();
      changed.select(1, t).add_(1).remainder_(11);
      const at::Tensor after = text.outputs(changed, {});
      EXPECT_TRUE(at::equal(after.narrow(1, 0, t), before.narrow(1, 0, t))) << preset << t;
      for (std::int64_t later = t; later < 6; ++later)
        EXPECT_FALSE(at::equal(after.select(1, later), before.select(1, later))) << preset << t;
    }
  }
}

TEST(Decoder, RefusesHeadsThatDoNotFit) {
  for (const auto& [options, problem] : std::vector<std::pair<std::string, std::string>>{
           {"{heads: 5}", "model.heads is 5; expected a divisor of the width, 768"},
           {"{heads: 256}", "model.heads is 256, which makes heads of 3 numbers; expected an even"},
           {"{preset: gpt2, rotary_base: 500}", "model.rotary_base is for positions: rotary"},
           {"{kv_heads: 5}", "model.kv_heads is 5; expected a divisor of the heads, 12"}})
    EXPECT_NE(model_problems("decoder", options).find(problem), std::string::npos)
        << model_problems("decoder", options);
  EXPECT_EQ(model_problems("decoder", "{heads: 256, positions: none}"), "");
}

/// The angles of 3 of 4 pairs at these positions, in float64.
at::Tensor angles(std::int64_t first, std::int64_t tokens) {
  const at::Tensor exponents = at::arange(3, at::kDouble).mul_(-std::log(100.0) / 3);
  return at::outer(at::arange(first, first + tokens, at::kDouble),
                   at::constant_pad_nd(exponents.exp(), {0, 1}));
}

TEST(RotaryTables, HaveTheBitsOfAnglesThatAreComputedAnew) {
  const RotaryTables tables({.base = 100, .share = 0.75});
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16})
    for (const auto& [first, tokens] : {std::pair{4, 4}, {0, 3}, {7, 30}, {37, 1}}) {
      const RotaryTable table = tables.of(first, tokens, 8, at::empty({0}, type));
      EXPECT_TRUE(at::equal(table.cosines, angles(first, tokens).cos().to(type))) << first;
      EXPECT_TRUE(at::equal(table.sines, angles(first, tokens).sin().to(type))) << first;
    }
}

TEST(RotaryTables, AreMadeOnceAlsoWhereThreadsAskTogether) {
  const RotaryTables tables({});
  const auto place = [&](std::int64_t first, std::int64_t tokens) {
    return tables.of(first, tokens, 8, at::empty({0}, at::kFloat)).cosines.storage().data();
  };
  std::vector<const void*> places(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < places.size(); ++i)
      threads.emplace_back([&, i] { places[i] = place(static_cast<std::int64_t>(8 * i), 8); });
  }
  const void* const longest = place(0, 64);
  EXPECT_EQ(place(56, 8), longest);
  EXPECT_EQ(places[7], longest);
  EXPECT_EQ(place(0, 64), longest);
  EXPECT_NE(place(64, 1), longest);
}

TEST(Bound, KeepsScoresBetweenItsEnds) {
  const LayerPtr layer = bound(15);
  const at::Tensor x =
      at::tensor({-1e6, -20.0, 0.0, 8.0, 1e6}, at::kDouble).set_requires_grad(true);
  const at::Tensor y = layer->forward(x, {}, {}, {});
  const double at8 = 15 * 8.0 / 17;  // 8² + 15² = 17²
  EXPECT_LT(relative_error(y.detach(), at::tensor({-15.0, -12.0, 0.0, at8, 15.0}, at::kDouble)),
            1e-9);
  y.sum().backward();
  EXPECT_NEAR(x.grad()[3].item<double>(), 15.0 * 15 * 15 / (17.0 * 17 * 17), 1e-15);
  EXPECT_NEAR(x.grad()[2].item<double>(), 1, 1e-15);
  // 1000² is too large for float16. Division, square, sum, root and product round by 2⁻¹¹ each, and
  // the root halves what the first three add up to: at most 2⁻⁹ in all.
  const at::Tensor half = layer->forward(at::tensor({1000.0}).to(at::kHalf), {}, {}, {});
  EXPECT_NEAR(half.item<float>(), 15 / std::sqrt(1 + 0.015 * 0.015), 15 * std::ldexp(1.0, -9));
}

}  // namespace
}  // namespace pipewright::test
