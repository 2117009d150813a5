// SPDX-License-Identifier: Apache-2.0
// Which tensors a cut model sends past stages, and what is wrong with models that lose some.
#include "core/nn/skips.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/nn/layers.h"

namespace pipewright {
namespace {

std::vector<LayerPtr> named(std::vector<LayerPtr> layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i]->set_name("l" + std::to_string(i));
  return layers;
}

LayerPtr plain() {
  return activation(Activation::Tanh);
}

using Skips = std::vector<Skip>;

TEST(Skips, GoFromTheStageThatPutsAsideToTheOneThatTakesBack) {
  const auto layers = named({stash(), plain(), plain(), add_stashed()});
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{4}), Skips{});
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{2, 2}), (Skips{{0, 1}}));
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{1, 1, 1, 1}), (Skips{{0, 3}}));
}

TEST(Skips, AreInTheOrderTheyArePutAside) {
  const auto layers = named({stash(), stash(), plain(), stash(), concatenate_stashed(),
                             concatenate_stashed(), plain(), concatenate_stashed()});
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>(8, 1)),
            (Skips{{0, 7}, {1, 5}, {3, 4}}));
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{3, 2, 2, 1}), (Skips{{0, 3}, {0, 2}}));
}

TEST(Skips, InsideALayerAreNobodysBusiness) {
  const auto closed = named({sequence({{"a", stash()}, {"b", plain()}, {"c", add_stashed()}})});
  EXPECT_EQ(closed[0]->skips().takes, 0);
  EXPECT_EQ(closed[0]->skips().puts, 0);
  const auto open =
      named({sequence({{"a", plain()}, {"b", stash()}}), plain(),
             sequence({{"a", plain()}, {"b", add_stashed()}, {"c", stash()}}), add_stashed()});
  EXPECT_EQ(open[2]->skips().takes, 1);
  EXPECT_EQ(open[2]->skips().puts, 1);
  EXPECT_EQ(skips_between(open, std::vector<std::int64_t>(4, 1)), (Skips{{0, 2}, {2, 3}}));
}

/// As an embedding, a layer of attention and a classifier have it.
std::vector<LayerPtr> masked(int attentions) {
  std::vector<LayerPtr> layers{sequence({{"a", mask_padding(1)}, {"b", plain()}})};
  for (int i = 0; i < attentions; ++i) {
    LayerPtr looks = attention({{"qkv", linear(2, 6)}}, {"out", linear(2, 2)}, 1, {.masked = true});
    layers.push_back(sequence({{"a", residual(sequence({{"a", looks}}))}, {"b", plain()}}));
  }
  layers.push_back(first_token(1));
  return named(layers);
}

using Copies = std::vector<std::vector<int>>;

TEST(Skips, ThatAreOnlyLookedAtGoStraightToEveryStageThatDoes) {
  const auto layers = masked(4);
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{6}), Skips{});
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{2, 2, 1, 1}),
            (Skips{{0, 3, false}, {0, 2, false}, {0, 1, false}}));
  EXPECT_EQ(leaving_copies(layers, std::vector<std::int64_t>{2, 2, 1, 1}),
            (Copies{{3}, {0}, {0}, {}}));
  const auto with_none_between = named({mask_padding(1), plain(), first_token(1)});
  EXPECT_EQ(skips_between(with_none_between, std::vector<std::int64_t>{1, 1, 1}),
            (Skips{{0, 2, false}}));
  EXPECT_EQ(leaving_copies(with_none_between, std::vector<std::int64_t>{1, 1, 1}),
            (Copies{{1}, {}, {}}));
}

TEST(Skips, ThatAreLookedAtInsideALayerAreCountedFromItsOutside) {
  EXPECT_EQ(masked(1)[1]->skips().looks, 1);
  EXPECT_EQ(masked(1)[1]->skips().takes, 0);
  const LayerPtr looks =
      attention({{"qkv", linear(2, 6)}}, {"out", linear(2, 2)}, 1, {.masked = true});
  const LayerPtr own = sequence({{"a", mask_padding(1)}, {"b", looks}, {"c", first_token(1)}});
  EXPECT_EQ(own->skips().looks, 0);
  EXPECT_EQ(own->skips().puts, 0);
  const LayerPtr taken = sequence({{"a", looks}, {"b", first_token(1)}});
  EXPECT_EQ(taken->skips().looks, 0);
  EXPECT_EQ(taken->skips().takes, 1);
  EXPECT_FALSE(masked(1)[0]->skips().gradients);
  EXPECT_TRUE(sequence({{"a", stash()}, {"b", mask_padding(1)}})->skips().gradients);
}

TEST(Skips, OfWeightsAreLentToEveryStageThatReadsThem) {
  const auto layers = named({sharing(linear(2, 2), {.lends = {"bias", "weight"}}),
                             sharing(linear(2, 2), {.takes = {"weight"}}),
                             sharing(linear(2, 2), {.looks = {"bias"}}),
                             sharing(linear(2, 2), {.takes = {"bias"}})});
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{1, 1, 1, 1}, 4),
            (Skips{{0, 3, true, 8, 1}, {0, 2, true, 8, 1}, {0, 1, true, 16, 0}}));
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{2, 2}, 4), (Skips{{0, 1, true, 8, 1}}));
  EXPECT_EQ(layers[2]->parameters().size(), 1u);
  EXPECT_EQ(layers[2]->parameters()[0].name, "weight");
}

TEST(Skips, AreNoCopiesOfParameters) {
  const auto copy = [](bool gradients) {
    return sharing(linear(2, 2), {.copies = {{"weight", "other", "l0.weight", gradients}}});
  };
  const auto layers = named({linear(2, 2), copy(true), copy(false), copy(true)});
  EXPECT_EQ(skips_between(layers, std::vector<std::int64_t>{2, 2}, 4), Skips{});
  EXPECT_EQ(layers[1]->parameters()[0].name, "other");
  EXPECT_EQ(layers[1]->parameters()[0].drawn_as, "l0.weight");
  const std::vector<TiedCopies> pairs{
      {0, 0, 0, 2, 4, 16}, {0, 1, 0, 2, 4, 16}, {0, 1, 2, 2, 4, 16}};
  EXPECT_EQ(tied_copies(layers, std::vector<std::int64_t>{2, 2}, 4), pairs);
}

std::string refusal_of_layers(const std::vector<LayerPtr>& layers) {
  try {
    skips_between(layers, std::vector<std::int64_t>(layers.size(), 1));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.message();
  }
  return "accepted";
}

TEST(Skips, ThatAreNeverTakenBackAreRefusedByName) {
  EXPECT_NE(refusal_of_layers(named({plain(), stash(), plain()})).find("'l1' puts a tensor aside"),
            std::string::npos);
  EXPECT_NE(
      refusal_of_layers(named({stash(), stash(), add_stashed()})).find("'l0' puts a tensor aside"),
      std::string::npos);
}

TEST(Skips, TakenBackTwiceOrWithoutOneAreRefusedByName) {
  EXPECT_NE(refusal_of_layers(named({plain(), add_stashed()})).find("'l1' takes a tensor back"),
            std::string::npos);
  EXPECT_NE(refusal_of_layers(named({stash(), add_stashed(), add_stashed()}))
                .find("'l2' takes a tensor back"),
            std::string::npos);
  EXPECT_NE(refusal_of_layers(named({add_stashed(), stash()})).find("'l0' takes a tensor back"),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright
