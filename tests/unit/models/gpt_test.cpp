// SPDX-License-Identifier: Apache-2.0
// The decoder-only Transformer: GPT-2's counts, names and first values, causality, and its formulas
// written out.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/models/text_model.h"
#include "tests/unit/nn/attention_reference.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(Gpt, HasGpt2sParametersAndAnOutputOfItsOwn) {
  const auto model = make_model("gpt");
  Counts expected(12, 7'087'872);  // 12 w² + 13 w, w = 768
  expected.insert(expected.begin(), (50'257 + 1'024) * 768);
  expected.push_back(2 * 768);
  expected.push_back(50'257 * 768);
  EXPECT_EQ(parameter_counts(*model), expected);
  EXPECT_EQ(total_parameters(*model), 124'439'808 + 50'257 * 768);
  EXPECT_EQ(total_parameters(*model), 163'037'184);
  EXPECT_EQ(total_parameters(*make_model("gpt", "{width: 1024, heads: 16, layers: 24}")),
            354'823'168 + 50'257 * 1'024);  // GPT-2 medium's, and the output's
}

TEST(Gpt, HasGpt2sParametersWhereTheOutputIsTheEmbedding) {
  EXPECT_EQ(total_parameters(*make_model("gpt", "{tie: same}")), 124'439'808);
  EXPECT_EQ(total_parameters(*make_model("gpt", "{tie: start}")), 163'037'184);
  const auto layers = make_model("gpt", "{layers: 2, tie: same}")->layers();
  EXPECT_TRUE(parameter_names(*layers[4]).empty());
  EXPECT_EQ(parameter_names(*layers[0])[0], "embeddings.wte.weight");
}

TEST(Gpt, GivesAScoreOfEveryTokenAtEveryPlace) {
  const auto model = make_model("gpt");
  EXPECT_EQ(model->task(), Task::Continue);
  EXPECT_EQ(model->input_shape(), Shape{1'024});
  EXPECT_EQ(model->vocabulary(), 50'257);
  EXPECT_EQ(model->classes(), 50'257);
  std::vector<Shape> shapes(14, Shape{1'024, 768});
  shapes.push_back({1'024, 50'257});
  EXPECT_EQ(boundary_shapes(*model), shapes);
  EXPECT_EQ(boundary_sizes(*model), std::vector<std::size_t>(15, 1));
  for (const std::size_t i : {0U, 5U, 13U}) EXPECT_EQ(head_shape(*model, i), shapes.back());
}

TEST(Gpt, NamesParametersAsGpt2) {
  const auto layers = make_model("gpt", "{layers: 2}")->layers();
  using Names = std::vector<std::string>;
  EXPECT_EQ(parameter_names(*layers[0]), (Names{"embeddings.wte.weight", "embeddings.wpe.weight"}));
  Names expected;
  for (const char* part : {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"})
    for (const char* what : {".weight", ".bias"})
      expected.push_back("h.1." + std::string(part) + what);
  EXPECT_EQ(parameter_names(*layers[2]), expected);
  EXPECT_EQ(parameter_names(*layers[3]), (Names{"final.weight", "final.bias"}));
  EXPECT_EQ(parameter_names(*layers[4]), Names{"head.weight"});
}

TEST(Gpt, StartsAsGpt2) {
  using Kind = Initializer::Kind;
  for (const LayerPtr& layer : make_model("gpt", "{layers: 8}")->layers())
    for (const ParameterSpec& spec : layer->parameters()) {
      const std::string name = parameter_name(*layer, spec.name);
      const bool bias = name.ends_with("bias");
      const bool norm = name.find("ln_") != std::string::npos || name.starts_with("final");
      const bool added = name.ends_with("c_proj.weight");
      EXPECT_EQ(spec.init.kind, norm || bias ? Kind::Constant : Kind::Normal) << name;
      const double std = added ? 0.02 / 4 : 0.02;  // √(2 · 8)
      EXPECT_DOUBLE_EQ(spec.init.a, bias ? 0 : norm ? 1 : std) << name;
    }
}

constexpr char kGptSmall[] =
    "{vocabulary: 11, tokens: 6, width: 6, heads: 2, layers: 2, dropout: 0.3}";

TEST(Gpt, SeesNothingThatComesLater) {
  const TextModel text("gpt", kGptSmall);
  const at::Tensor ids = text.ids(2, 6, 1);
  for (const bool training : {true, false}) {
    const Pass pass{.training = training, .seed = 3};
    const at::Tensor before = text.outputs(ids, pass);
    for (std::int64_t t = 0; t < 6; ++t) {
      at::Tensor changed = ids.clone();
      changed.select(1, t).add_(1).remainder_(11);
      const at::Tensor after = text.outputs(changed, pass);
      EXPECT_TRUE(at::equal(after.narrow(1, 0, t), before.narrow(1, 0, t))) << "token " << t;
      for (std::int64_t later = t; later < (training ? t + 1 : 6); ++later)
        EXPECT_FALSE(at::equal(after.select(1, later), before.select(1, later)))
            << "token " << t << " at " << later;
    }
  }
}

TEST(Gpt, ComputesItsFormulas) {
  const TextModel text("gpt", kGptSmall);
  const std::int64_t n = 2, t = 5, width = 6;
  const at::Tensor ids = text.ids(n, t, 1);
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return linear_reference(x, text.parameter(name + ".weight"), text.parameter(name + ".bias"));
  };
  const auto normed = [&](const at::Tensor& x, const std::string& name) {
    return LayerNormReference(x).forward(text.parameter(name + ".weight"),
                                         text.parameter(name + ".bias"));
  };
  for (const bool training : {true, false}) {
    const Pass pass{.training = training, .seed = 3, .epoch = 1, .minibatch = 7, .first_sample = 2};
    const auto mask_of = [&](at::IntArrayRef shape, const std::string& name) {
      return dropout_mask_reference(shape, training ? 0.3 : 0, 3, name.c_str(), 1, 7, 2);
    };
    const auto mask = [&](const std::string& name) {
      return mask_of({n, t, width}, name).view({n * t, width});
    };
    at::Tensor x = at::empty({n * t, width}, at::kDouble);
    for (std::int64_t i = 0; i < n * t; ++i)
      x[i] = text.parameter("embeddings.wte.weight")[ids.flatten()[i].item<std::int64_t>()] +
             text.parameter("embeddings.wpe.weight")[i % t];
    x = x * mask("embeddings.dropout");
    for (const std::string name : {"h.0", "h.1"}) {
      const SelfAttentionReference attention(
          normed(x, name + ".ln_1").view({n, t, width}),
          {text.parameter(name + ".attn.c_attn.weight"), text.parameter(name + ".attn.c_attn.bias"),
           text.parameter(name + ".attn.c_proj.weight"),
           text.parameter(name + ".attn.c_proj.bias")},
          2, mask_of({n, 2, t, t}, name + ".0.attn.dropout"),
          at::ones({t, t}, at::kDouble).tril().expand({n, t, t}));
      x = x + attention.output().view({n * t, width}) * mask(name + ".0.dropout");
      const at::Tensor z = linear(normed(x, name + ".ln_2"), name + ".mlp.c_fc");
      const at::Tensor gelu =
          z * 0.5 * (1 + (std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)).tanh());
      x = x + linear(gelu, name + ".mlp.c_proj") * mask(name + ".1.dropout");
    }
    const at::Tensor expected =
        product_reference(normed(x, "final"), text.parameter("head.weight").t()).view({n, t, 11});
    EXPECT_LT(relative_error(text.outputs(ids, pass), expected), kFloat64Relative)
        << "training: " << training;
  }
}

/// Logits of transformers 4.57.1, GPT2LMHeadModel with untied weights in evaluation and float64,
/// its parameters set to made_up() of our names for them, transposed where it stores them so.
TEST(Gpt, ComputesWhatHuggingFacesDoes) {
  TextModel text("gpt", "{vocabulary: 5, tokens: 6, width: 4, heads: 2, layers: 2}");
  text.make_up();
  const at::Tensor ids = at::tensor({0, 3, 1, 4, 4, 2}, at::kLong).view({2, 3});
  const at::Tensor expected =
      at::tensor(
          {0.34222533191180055, -0.9487544807774618,  0.898069296340112,   -0.22528005251491195,
           -0.6035635578717287, 0.371618322630605,    -1.0257652108482367, 0.9693514505189301,
           -0.2414555731649392, -0.6536996602764709,  0.4438366913519967,  -0.9908996869062241,
           0.8515538271720108,  -0.12232576699973496, -0.6916389126387602, 0.15378651115039055,
           -0.7998445180287339, 0.8918400226340336,   -0.366046565222457,  -0.4133120180406436,
           0.1491275053943641,  -0.875007896824679,   0.99475915453511,    -0.42542805449043003,
           -0.4386024866269367, 0.3313280073027688,   -1.0038198087255408, 0.9809528216371926,
           -0.2785672997370822, -0.6167853447285017},
          at::kDouble)
          .view({2, 3, 5});
  EXPECT_LT(relative_error(text.outputs(ids, {.training = false}), expected), kFloat64Relative);
}

TEST(Gpt, RefusesTiedWeights) {
  const std::string problem = model_problems("gpt", "{tie_weights: true}");
  EXPECT_NE(problem.find("model.tie_weights is true; expected false"), std::string::npos)
      << problem;
  EXPECT_EQ(model_problems("gpt", "{tie_weights: false}"), "");
}

TEST(Gpt, RefusesHeadsThatDoNotDivideTheWidth) {
  EXPECT_NE(model_problems("gpt", "{heads: 5}").find("expected a divisor of the width, 768"),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
