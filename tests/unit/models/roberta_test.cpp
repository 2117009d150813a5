// SPDX-License-Identifier: Apache-2.0
// RoBERTa: counts and cuts of what was published, Hugging Face's names, and its formulas written
// out, with padding.
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
constexpr std::int64_t kPadding = 1;

TEST(Roberta, HasTheParametersOfItsBaseSize) {
  const auto model = make_model("roberta");
  Counts expected(12, 7'087'872);
  expected.insert(expected.begin(), 39'000'576);
  expected.push_back(592'130);
  EXPECT_EQ(parameter_counts(*model), expected);
  EXPECT_EQ(total_parameters(*model), 124'647'170);
}

TEST(Roberta, HasTheCutsOfBoundaryCompression) {
  const auto model = make_model("roberta");
  const Counts three = stage_parameters(*model, 3), five = stage_parameters(*model, 5);
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three[0] + three[2], 53'768'450);  // one worker's
  EXPECT_EQ(three[1], 70'878'720);
  ASSERT_EQ(five.size(), 5U);
  EXPECT_EQ(five[0] + five[4], 53'768'450);
  EXPECT_EQ(Counts(five.begin() + 1, five.end() - 1), (Counts{28'351'488, 28'351'488, 14'175'744}));
  EXPECT_TRUE(model->published_balance(2).empty());
  EXPECT_TRUE(make_model("roberta", "{layers: 6}")->published_balance(3).empty());
}

TEST(Roberta, PassesTheMaskFromTheEmbeddingsToTheHead) {
  const auto model = make_model("roberta");
  EXPECT_EQ(model->vocabulary(), 50'265);
  std::vector<Shape> shapes(13, Shape{128, 768});
  shapes.push_back({2});
  EXPECT_EQ(boundary_shapes(*model), shapes);
  std::vector<std::size_t> sizes(13, 2);
  sizes.push_back(1);
  EXPECT_EQ(boundary_sizes(*model), sizes);
  for (const std::size_t i : {0U, 5U, 13U}) EXPECT_EQ(head_shape(*model, i), Shape{2});
}

TEST(Roberta, HasHuggingFacesNames) {
  const auto layers = make_model("roberta")->layers();
  using Names = std::vector<std::string>;
  EXPECT_EQ(parameter_names(*layers[0]),
            (Names{"embeddings.word_embeddings.weight", "embeddings.token_type_embeddings.weight",
                   "embeddings.position_embeddings.weight", "embeddings.LayerNorm.weight",
                   "embeddings.LayerNorm.bias"}));
  Names expected;
  for (const char* part : {"attention.self.query", "attention.self.key", "attention.self.value",
                           "attention.output.dense", "attention.output.LayerNorm",
                           "intermediate.dense", "output.dense", "output.LayerNorm"})
    for (const char* what : {".weight", ".bias"})
      expected.push_back("layer.3." + std::string(part) + what);
  EXPECT_EQ(parameter_names(*layers[4]), expected);
  EXPECT_EQ(parameter_names(*layers[13]), (Names{"head.dense.weight", "head.dense.bias",
                                                 "head.out_proj.weight", "head.out_proj.bias"}));
}

TEST(Roberta, StartsNormalWithZeroRowsForPadding) {
  using Kind = Initializer::Kind;
  for (const LayerPtr& layer : make_model("roberta")->layers())
    for (const ParameterSpec& spec : layer->parameters()) {
      const std::string name = parameter_name(*layer, spec.name);
      const bool norm = name.find("LayerNorm") != std::string::npos, bias = name.ends_with("bias");
      EXPECT_EQ(spec.init.kind, norm || bias ? Kind::Constant : Kind::Normal) << name;
      EXPECT_EQ(spec.init.a, bias ? 0 : norm ? 1 : 0.02) << name;
      const bool padded =
          name.ends_with("word_embeddings.weight") || name.ends_with("position_embeddings.weight");
      EXPECT_EQ(spec.init.zero_row, padded ? kPadding : -1) << name;
    }
}

constexpr char kRobertaSmall[] =
    "{vocabulary: 11, tokens: 6, positions: 9, width: 6, heads: 2, feed_forward: 8, layers: 2, "
    "classes: 3, dropout: 0.3}";

/// Samples of six, three and no words, the second with a hole.
at::Tensor padded_ids() {
  return at::tensor({0, 5, 6, 7, 8, 2,  //
                     0, 1, 9, 2, 1, 1,  //
                     1, 1, 1, 1, 1, 1},
                    at::kLong)
      .view({3, 6});
}

class RobertaReference {
 public:
  RobertaReference(const TextModel& text, const at::Tensor& ids, const Pass& pass)
      : text_(text), ids_(ids), pass_(pass), n_(ids.size(0)), t_(ids.size(1)) {}

  /// [rows, width]; Hugging Face: positions padding + 1, … over the words; type 0 everywhere.
  at::Tensor embedded() const {
    at::Tensor sum = at::empty({n_ * t_, 6}, at::kDouble);
    for (std::int64_t s = 0; s < n_; ++s)
      for (std::int64_t t = 0, words = 0; t < t_; ++t) {
        const auto id = ids_[s][t].item<std::int64_t>();
        const std::int64_t position = id == kPadding ? kPadding : kPadding + ++words;
        sum[s * t_ + t] = p("embeddings.word_embeddings.weight")[id] +
                          p("embeddings.position_embeddings.weight")[position] +
                          p("embeddings.token_type_embeddings.weight")[0];
      }
    return normed(sum, "embeddings.LayerNorm") * mask("embeddings.dropout");
  }

  at::Tensor layer(const at::Tensor& x, const std::string& name) const {
    at::Tensor allowed = at::zeros({n_, t_, t_}, at::kDouble);
    for (std::int64_t s = 0; s < n_; ++s)
      for (std::int64_t key = 0; key < t_; ++key)
        if (ids_[s][key].item<std::int64_t>() != kPadding) allowed[s].select(1, key).fill_(1);
    const auto projections = [&](const std::string& what) {
      const std::string self = name + ".attention.self.";
      return at::cat({p(self + "query" + what), p(self + "key" + what), p(self + "value" + what)});
    };
    const SelfAttentionReference attention(
        x.view({n_, t_, 6}),
        {projections(".weight"), projections(".bias"), p(name + ".attention.output.dense.weight"),
         p(name + ".attention.output.dense.bias")},
        2, mask_of({n_, 2, t_, t_}, name + ".0.attention.dropout"), allowed);
    const at::Tensor attended = attention.output().view({n_ * t_, 6}) * mask(name + ".0.dropout1");
    const at::Tensor a = normed(x + attended, name + ".attention.output.LayerNorm");
    const at::Tensor z = linear(a, name + ".intermediate.dense");
    const at::Tensor gelu = z * 0.5 * (1 + at::erf(z / std::sqrt(2.0)));
    const at::Tensor fed = linear(gelu, name + ".output.dense") * mask(name + ".2.dropout2");
    return normed(a + fed, name + ".output.LayerNorm");
  }

  at::Tensor logits(const at::Tensor& x) const {
    const at::Tensor first = x.view({n_, t_, 6}).select(1, 0) * mask_of({n_, 6}, "head.dropout");
    const at::Tensor pooled =
        linear(first, "head.dense").tanh() * mask_of({n_, 6}, "head.dropout2");
    return linear(pooled, "head.out_proj");
  }

 private:
  at::Tensor p(const std::string& name) const { return text_.parameter(name); }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return linear_reference(x, p(name + ".weight"), p(name + ".bias"));
  }
  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    return LayerNormReference(x).forward(p(name + ".weight"), p(name + ".bias"));
  }
  at::Tensor mask_of(at::IntArrayRef shape, const std::string& name) const {
    return dropout_mask_reference(shape, pass_.training ? 0.3 : 0, pass_.seed, name.c_str(),
                                  pass_.epoch, pass_.minibatch, pass_.first_sample);
  }
  at::Tensor mask(const std::string& name) const {
    return mask_of({n_, t_, 6}, name).view({n_ * t_, 6});
  }

  const TextModel& text_;
  at::Tensor ids_;
  Pass pass_;
  std::int64_t n_, t_;
};

TEST(Roberta, ComputesItsFormulas) {
  const TextModel text("roberta", kRobertaSmall);
  const at::Tensor ids = padded_ids().narrow(0, 0, 2);
  for (const bool training : {true, false}) {
    const Pass pass{.training = training, .seed = 3, .epoch = 1, .minibatch = 7, .first_sample = 2};
    const RobertaReference reference(text, ids, pass);
    at::Tensor x = reference.embedded();
    EXPECT_LT(relative_error(text.run(ids, pass, 0)[0].view({12, 6}), x), kFloat64Relative);
    for (const char* name : {"layer.0", "layer.1"}) x = reference.layer(x, name);
    EXPECT_LT(relative_error(text.run(ids, pass, 2)[0].view({12, 6}), x), kFloat64Relative);
    EXPECT_LT(relative_error(text.outputs(ids, pass), reference.logits(x)), kFloat64Relative)
        << "training: " << training;
  }
}

/// Logits of transformers 4.57.1, RobertaForSequenceClassification in evaluation and float64, with
/// its parameters set to made_up() of our names for them.
TEST(Roberta, ComputesWhatHuggingFacesDoes) {
  TextModel text("roberta",
                 "{vocabulary: 11, tokens: 6, positions: 9, width: 4, heads: 2, feed_forward: 6, "
                 "layers: 2}");
  text.make_up();
  const at::Tensor ids = at::tensor({0, 5, 6, 7, 8, 2, 0, 9, 2, 1, 1, 1}, at::kLong).view({2, 6});
  const at::Tensor expected = at::tensor({-0.8033264271806251, -1.408810689923924,
                                          -0.8038326681277883, -1.4088900084981582},
                                         at::kDouble)
                                  .view({2, 2});
  EXPECT_LT(relative_error(text.outputs(ids, {.training = false}), expected), kFloat64Relative);
}

TEST(Roberta, IsNotInfluencedByPadding) {
  TextModel text("roberta", kRobertaSmall);
  const at::Tensor ids = padded_ids().narrow(0, 0, 2);
  const Pass pass{.training = false};
  const at::Tensor before = text.outputs(ids, pass);
  const at::Tensor words = ids.ne(kPadding);
  const at::Tensor hidden = text.run(ids, pass, 2)[0].masked_select(words.unsqueeze(2));
  for (const char* name : {"word_embeddings", "position_embeddings"})
    text.parameter(std::string("embeddings.") + name + ".weight")[kPadding].fill_(100);
  EXPECT_TRUE(at::equal(text.outputs(ids, pass), before));
  EXPECT_TRUE(at::equal(text.run(ids, pass, 2)[0].masked_select(words.unsqueeze(2)), hidden));
  EXPECT_LT(relative_error(text.outputs(ids.narrow(0, 1, 1).narrow(1, 0, 4), pass),
                           before.narrow(0, 1, 1)),
            kFloat64Relative)
      << "without the last two tokens, which are padding";
}

TEST(Roberta, GivesPaddingNoGradient) {
  TextModel text("roberta", kRobertaSmall);
  text.require_gradients();
  const at::Tensor y = text.outputs(padded_ids());
  for (const char* name : {"word_embeddings", "position_embeddings"}) {
    const at::Tensor weight = text.parameter(std::string("embeddings.") + name + ".weight");
    const at::Tensor gradient = torch::autograd::grad({y.sum()}, {weight}, {}, true)[0];
    EXPECT_TRUE(gradient[kPadding].eq(0).all().item<bool>()) << name;
    EXPECT_TRUE(gradient[kPadding + 1].ne(0).any().item<bool>()) << name;
  }
}

TEST(Roberta, IsFiniteOnASampleOfPaddingAlone) {
  TextModel text("roberta", kRobertaSmall);
  text.require_gradients();
  for (const bool training : {true, false}) {
    const at::Tensor y = text.outputs(padded_ids(), {.training = training});
    EXPECT_TRUE(at::isfinite(y).all().item<bool>());
    for (const at::Tensor& gradient : torch::autograd::grad({y.sum()}, text.all_parameters()))
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
  }
}

TEST(Roberta, RefusesWhatDoesNotFitTogether) {
  const auto expect = [](const char* options, const char* message) {
    EXPECT_NE(model_problems("roberta", options).find(message), std::string::npos)
        << model_problems("roberta", options);
  };
  expect("{heads: 7}", "expected a divisor of the width, 768");
  expect("{tokens: 513}", "expected at least 515");
  expect("{vocabulary: 5, padding: 5}", "expected a token of the vocabulary, 0 to 4");
  make_model("roberta", "{tokens: 512}");
}

}  // namespace
}  // namespace pipewright::test
