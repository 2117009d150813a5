// SPDX-License-Identifier: Apache-2.0
// The decoder whose stages send coordinates is the one that sends everything, with its embedding
// and the matrices that end attention and MLP written as products.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/nn/layers/subspace.h"
#include "core/tensors/torch.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/models/text_model.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {
namespace {

constexpr std::int64_t kVocabulary = 23, kWidth = 12, kCoordinates = 5, kTokens = 7;

std::string options(const std::string& more) {
  return concat("{preset: slow_links, vocabulary: ", kVocabulary, ", tokens: ", kTokens,
                ", width: ", kWidth, ", heads: 3, layers: 3, zero_init: false, ", more, "}");
}

at::Tensor loss_of(const at::Tensor& scores, const at::Tensor& ids) {
  return at::cross_entropy_loss(scores.flatten(0, 1), ids.flatten());
}

/// The subspace's parameters as those of the model that sends everything.
std::vector<std::vector<at::Tensor>> whole(const TextModel& small, const TextModel& large,
                                           const Subspace::Tables& tables) {
  std::vector<std::vector<at::Tensor>> all;
  for (const LayerPtr& layer : large.layers()) {
    all.emplace_back();
    for (const ParameterSpec& spec : layer->parameters()) {
      const std::string name = parameter_name(*layer, spec.name);
      const at::Tensor& own = small.parameter(name);
      if (name == "embeddings.tokens.weight")
        all.back().push_back(tables.origins + own.mm(tables.directions.t()));
      else if (name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight"))
        all.back().push_back(tables.directions.mm(own));
      else if (name.ends_with("o_proj.bias") || name.ends_with("down_proj.bias"))
        all.back().push_back(tables.directions.mv(own));
      else
        all.back().push_back(own);
    }
  }
  return all;
}

/// Ten steps of gradient descent; the losses.
template <class Scores>
std::vector<double> descend(TextModel& model, const Scores& scores) {
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 10; ++step) {
    model.require_gradients();
    const at::Tensor ids = model.ids(2, kTokens, step), targets = model.ids(2, kTokens, step + 50);
    const at::Tensor loss = loss_of(scores(ids), targets);
    losses.push_back(loss.item<double>());
    loss.backward();
    const at::NoGradGuard no_grad;
    for (at::Tensor parameter : model.all_parameters()) {
      parameter.sub_(parameter.grad(), 0.5);
      parameter.mutable_grad().reset();
    }
  }
  return losses;
}

TEST(Subspace, TrainsTheModelThatSendsEverything) {
  TextModel sent("decoder", options(concat("subspace: ", kCoordinates)));
  TextModel copy("decoder", options(concat("subspace: ", kCoordinates)));
  TextModel large("decoder", options("embedding_norm: false"));
  const Subspace subspace(kVocabulary, kWidth, kCoordinates);
  const Subspace::Tables tables = subspace.tables(at::empty({0}, at::kDouble));
  const auto sent_losses = descend(sent, [&](const at::Tensor& ids) { return sent.outputs(ids); });
  const auto whole_losses = descend(copy, [&](const at::Tensor& ids) {
    large.parameters() = whole(copy, large, tables);
    return large.outputs(ids);
  });
  EXPECT_LT(sent_losses.back(), sent_losses.front());
  for (std::size_t step = 0; step < sent_losses.size(); ++step)
    EXPECT_NEAR(sent_losses[step], whole_losses[step], 1e-12) << step;
  const auto a = sent.all_parameters(), b = copy.all_parameters();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_LT(relative_error(a[i].detach(), b[i].detach()), 1e-12) << i;
}

TEST(Subspace, SendsCoordinatesAndTokensInTwoBytes) {
  TextModel model("decoder", options(concat("subspace: ", kCoordinates)));
  const at::Tensor ids = model.ids(2, kTokens, 1);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const Tensors sent = model.run(ids, {}, layer);
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent[0].sizes(), (at::IntArrayRef{2, kTokens, kCoordinates}));
    EXPECT_EQ(sent[1].sizes(), ids.sizes());
    EXPECT_EQ(sent[1].element_size(), 2u);
  }
  EXPECT_EQ(model.run(ids, {}, 4).size(), 1u);
}

TEST(Subspace, KeepsTokensOfEveryVocabulary) {
  for (const std::int64_t tokens : {3, 32'768, 50'304, 65'536, 65'537, 1'000'000}) {
    const Subspace subspace(tokens, 4, 2);
    const at::Tensor ids = at::tensor({std::int64_t{0}, tokens / 2, tokens - 1}, at::kLong);
    EXPECT_TRUE(at::equal(subspace.wide(subspace.narrow(ids)), ids)) << tokens;
    EXPECT_EQ(subspace.narrow(ids).element_size(), tokens <= 65'536 ? 2u : 4u) << tokens;
  }
}

TEST(Subspace, HasOrthonormalDirections) {
  const Subspace subspace(3, 40, 16);
  const at::Tensor u = subspace.tables(at::empty({0}, at::kDouble)).directions;
  EXPECT_LT(relative_error(u.t().mm(u), at::eye(16, at::kDouble)), 1e-13);
}

TEST(Subspace, IsRefusedWhereItDoesNotFit) {
  EXPECT_NE(model_problems("decoder", "{width: 96, subspace: 97}").find("at most the width, 96"),
            std::string::npos);
  EXPECT_NE(model_problems("decoder", "{preset: slow_links, subspace: 160, embedding_norm: true}")
                .find("would leave the subspace"),
            std::string::npos);
  EXPECT_NE(model_problems("decoder", "{vocabulary: 1000000, width: 7680, subspace: 8}")
                .find("expected at most 268435456 numbers in all"),
            std::string::npos);
  EXPECT_EQ(model_problems("decoder", "{preset: slow_links, subspace: 160}"), "");
}

/// Its norm needs the tokens, and a head is given one tensor.
TEST(Subspace, HasNoAuxiliaryHeads) {
  for (const std::size_t last : {0, 1, 2}) {
    EXPECT_EQ(make_model("decoder", options("subspace: 5"))->head(last), nullptr) << last;
    EXPECT_NE(make_model("decoder", options("subspace: 0"))->head(last), nullptr) << last;
  }
}

}  // namespace
}  // namespace pipewright::test
