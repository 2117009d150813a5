// SPDX-License-Identifier: Apache-2.0
// Rules from our names to another library's, and who has some.
#include "core/tensor_files/foreign_names.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace pipewright::test {
namespace {

using Names = std::vector<std::string>;

TEST(NameTranslation, AppliesRewritesOneAfterAnother) {
  const NameTranslation translated({.names = {{"^a\\.", "b."}, {"^b\\.(\\d)", "c$1"}}});
  EXPECT_EQ(translated.theirs("a.7.weight").names, Names{"c7.weight"});
  EXPECT_EQ(translated.theirs("weight.a.7").names, Names{"weight.a.7"});
}

TEST(NameTranslation, NamesWhatAFileMayHaveInstead) {
  const NameTranslation translated(
      {.names = {{"^", "base."}}, .instead = {{"^base\\.out\\.", "base.in."}, {"^base\\.", ""}}});
  EXPECT_EQ(translated.theirs("out.weight").names,
            (Names{"base.out.weight", "base.in.weight", "in.weight"}));
  EXPECT_EQ(translated.theirs("norm.weight").names, (Names{"base.norm.weight", "norm.weight"}));
}

TEST(NameTranslation, SaysWhichOfOursAreTransposed) {
  const NameTranslation translated({.names = {{"a", "b"}}, .transposed = {"a\\.weight$"}});
  EXPECT_TRUE(translated.theirs("a.weight").transposed);
  EXPECT_FALSE(translated.theirs("a.weight.x").transposed);
}

TEST(NameTranslation, IgnoresWholeNamesOnly) {
  const NameTranslation translated({.ignored = {"aux\\..*"}});
  EXPECT_TRUE(translated.ignores("aux.weight"));
  EXPECT_FALSE(translated.ignores("layer.aux.weight"));
}

TEST(NameTranslation, HasNoNamesForAuxiliaryHeads) {
  EXPECT_EQ(NameTranslation({}).theirs("heads.0.fc.weight").names, Names{});
}

TEST(ForeignNames, AreFoundByModelAndFormat) {
  const ForeignNamesRegistry& registry = ForeignNamesRegistry::instance();
  EXPECT_NE(registry.find("resnet18", "torchvision"), nullptr);
  EXPECT_EQ(registry.find("resnet18", "huggingface"), nullptr);
  EXPECT_EQ(registry.formats("resnet18"), Names{"torchvision"});
  EXPECT_EQ(registry.formats("mlp"), Names{});
}

}  // namespace
}  // namespace pipewright::test
