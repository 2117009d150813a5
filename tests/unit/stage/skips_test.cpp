// Which tensors a cut model sends past stages, and what is wrong with models that lose some.
#include "core/stage/skips.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/stage/layers.h"

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

std::string refusal(const std::vector<LayerPtr>& layers) {
  try {
    skips_between(layers, std::vector<std::int64_t>(layers.size(), 1));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.message();
  }
  return "accepted";
}

TEST(Skips, ThatAreNeverTakenBackAreRefusedByName) {
  EXPECT_NE(refusal(named({plain(), stash(), plain()})).find("'l1' puts a tensor aside"),
            std::string::npos);
  EXPECT_NE(refusal(named({stash(), stash(), add_stashed()})).find("'l0' puts a tensor aside"),
            std::string::npos);
}

TEST(Skips, TakenBackTwiceOrWithoutOneAreRefusedByName) {
  EXPECT_NE(refusal(named({plain(), add_stashed()})).find("'l1' takes a tensor back"),
            std::string::npos);
  EXPECT_NE(
      refusal(named({stash(), add_stashed(), add_stashed()})).find("'l2' takes a tensor back"),
      std::string::npos);
  EXPECT_NE(refusal(named({add_stashed(), stash()})).find("'l0' takes a tensor back"),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright
