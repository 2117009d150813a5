// SPDX-License-Identifier: Apache-2.0
// SpecTrain's Transformer: its counts and cuts, and its formulas written out.
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

TEST(Transformer, HasSpecTrainsParameters) {
  const auto model = make_model("transformer");
  EXPECT_EQ(parameter_counts(*model), (Counts{1'322'240, 99'584, 99'584, 99'584, 258}));
  EXPECT_EQ(total_parameters(*model), 1'621'250);
  std::size_t tensors = 0;
  for (const LayerPtr& layer : model->layers()) tensors += layer->parameters().size();
  EXPECT_EQ(tensors, 55U);
}

TEST(Transformer, HasSpecTrainsCuts) {
  const auto model = make_model("transformer");
  EXPECT_EQ(stage_parameters(*model, 2), (Counts{1'421'824, 199'426}));
  EXPECT_EQ(stage_parameters(*model, 4), (Counts{1'322'240, 99'584, 99'584, 99'842}));
  EXPECT_TRUE(model->published_balance(3).empty());
  EXPECT_TRUE(make_model("transformer", "{blocks: 2}")->published_balance(2).empty());
}

TEST(Transformer, KeepsTokensAndWidthUpToTheClassifier) {
  const auto model = make_model("transformer");
  EXPECT_EQ(model->input_shape(), Shape{200});
  EXPECT_EQ(model->vocabulary(), 10'000);
  EXPECT_EQ(boundary_shapes(*model),
            (std::vector<Shape>{{200, 128}, {200, 128}, {200, 128}, {200, 128}, {2}}));
  EXPECT_EQ(boundary_sizes(*model), (std::vector<std::size_t>{1, 1, 1, 1, 1}));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(head_shape(*model, i), Shape{2}) << "layer " << i;
}

TEST(Transformer, StartsAsItsSource) {
  using Kind = Initializer::Kind;
  for (const LayerPtr& layer : make_model("transformer")->layers())
    for (const ParameterSpec& spec : layer->parameters()) {
      const std::string name = parameter_name(*layer, spec.name);
      const bool norm = name.find("norm") != std::string::npos;
      const bool bias = name.ends_with("bias");
      EXPECT_EQ(spec.init.kind, norm || bias ? Kind::Constant : Kind::Normal) << name;
      const double weight = name == "embeddings.tokens.weight" || norm ? 1 : 0.01;
      EXPECT_EQ(spec.init.a, bias ? 0 : weight) << name;
    }
  for (const ParameterSpec& spec :
       make_model("transformer", "{linear_std: 0}")->layers().back()->parameters())
    EXPECT_EQ(spec.init.kind, Kind::Uniform) << spec.name;
}

TEST(Transformer, EmbedsTokensThroughALinearLayerAndAddsPositions) {
  const TextModel text("transformer", "{vocabulary: 7, tokens: 5, width: 4, heads: 2}");
  const at::Tensor ids = text.ids(3, 4, 1);
  const auto p = [&](const std::string& name) { return text.parameter("embeddings." + name); };
  const at::Tensor rows = p("tokens.weight").index_select(0, ids.flatten());
  const at::Tensor identity = at::eye(5, at::kDouble).narrow(0, 0, 4);
  const at::Tensor expected =
      linear_reference(rows, p("linear.weight"), p("linear.bias")).view({3, 4, 4}) +
      linear_reference(identity, p("positions.weight"), p("positions.bias"));
  EXPECT_LT(relative_error(text.run(ids, {}, 0)[0], expected), kFloat64Relative);
}

TEST(Transformer, AddsTheInputOfABlockTwice) {
  constexpr double kDropped = 0.4;
  const TextModel text("transformer",
                       "{vocabulary: 7, tokens: 5, width: 6, heads: 3, feed_forward: 8, blocks: 1, "
                       "dropout: 0.4}");
  const at::Tensor ids = text.ids(2, 5, 1);
  const Pass pass{.seed = 3, .epoch = 1, .minibatch = 7, .first_sample = 2};
  const auto p = [&](const std::string& name) { return text.parameter("block1." + name); };
  const auto mask = [&](const char* name) {
    return dropout_mask_reference({2, 5, 6}, kDropped, 3, name, 1, 7, 2);
  };
  const at::Tensor x = text.run(ids, pass, 0)[0], rows = x.view({10, 6});
  const auto projections = [&](const std::string& what) {
    return at::cat(
        {p("attention.query." + what), p("attention.key." + what), p("attention.value." + what)});
  };
  const SelfAttentionReference attention(x,
                                         {projections("weight"), projections("bias"),
                                          p("attention.output.weight"), p("attention.output.bias")},
                                         3, at::ones({2, 3, 5, 5}, at::kDouble));
  const at::Tensor first = x + attention.output() * mask("block1.0.0.dropout1");
  const at::Tensor a =
      LayerNormReference(first.view({10, 6})).forward(p("norm1.weight"), p("norm1.bias"));
  const at::Tensor fed =
      linear_reference(relu_reference(linear_reference(a, p("linear1.weight"), p("linear1.bias"))),
                       p("linear2.weight"), p("linear2.bias")) *
      mask("block1.0.dropout2").view({10, 6});
  const at::Tensor y =
      LayerNormReference(rows + fed).forward(p("norm2.weight"), p("norm2.bias")).view({2, 5, 6});
  EXPECT_LT(relative_error(text.run(ids, pass, 1)[0], y), kFloat64Relative);
  const at::Tensor logits = linear_reference(y.sum(1) / 5, text.parameter("classifier.weight"),
                                             text.parameter("classifier.bias"));
  EXPECT_LT(relative_error(text.outputs(ids, pass), logits), kFloat64Relative);
}

TEST(Transformer, RefusesHeadsThatDoNotDivideTheWidth) {
  EXPECT_NE(
      model_problems("transformer", "{heads: 3}").find("expected a divisor of the width, 128"),
      std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
