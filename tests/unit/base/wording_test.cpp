// SPDX-License-Identifier: Apache-2.0
#include "core/base/wording.h"

#include <gtest/gtest.h>

#include <vector>

namespace pipewright {
namespace {

using Choices = std::vector<std::string>;

TEST(Wording, CountsWithTheNounInItsNumber) {
  EXPECT_EQ(counted(1, "worker"), "1 worker");
  EXPECT_EQ(counted(0, "worker"), "0 workers");
  EXPECT_EQ(counted(2u, "mini-batch"), "2 mini-batches");
  EXPECT_EQ(counted(-1, "step"), "-1 steps");
  EXPECT_EQ(counted(4, "epoch"), "4 epochs");
  EXPECT_EQ(counted(std::size_t{131072}, "device"), "131,072 devices");
}

TEST(Wording, GroupsDigitsFromFiveOn) {
  EXPECT_EQ(grouped_text(4096), "4096");
  EXPECT_EQ(grouped_text(10000), "10,000");
  EXPECT_EQ(grouped_text(-123456), "-123,456");
  EXPECT_EQ(grouped_text(1e6), "1,000,000");
  EXPECT_EQ(grouped_text(9e15), "9,000,000,000,000,000");
  EXPECT_EQ(grouped_text(0.001), "0.001");
  EXPECT_EQ(grouped_text(1e300), "1e+300");
}

TEST(Wording, SuggestsTheNearestNameElseThoseThatBeginAlike) {
  const Choices names{"cifar10", "cifar100", "bf16", "fp8", "memory_gib", "memory_gb_per_s"};
  EXPECT_EQ(did_you_mean("cifar11", names), "; did you mean 'cifar10'?");
  EXPECT_EQ(did_you_mean("cifar", names), "; did you mean 'cifar10' or 'cifar100'?");
  EXPECT_EQ(did_you_mean("bf8", names), "; did you mean 'bf16'?");
  EXPECT_EQ(did_you_mean("memory", names), "; did you mean 'memory_gib' or 'memory_gb_per_s'?");
  EXPECT_EQ(did_you_mean("mnist", names), "");
  EXPECT_EQ(did_you_mean("c", names), "");
  EXPECT_EQ(did_you_mean("run", Choices{"run1", "run2", "run3", "run4"}), "; did you mean 'run1'?");
  EXPECT_EQ(did_you_mean("seed", Choices{"seed 10", "seed 20", "seed 30", "seed 40"}), "")
      << "so many are no suggestion";
}

TEST(PluginHint, IsForNamesThatAreNearlyNone) {
  const std::vector<std::string> names{"cifar10", "cifar100"};
  EXPECT_EQ(plugin_hint("spirals", names), "; one of a plugin needs --plugin FILE");
  EXPECT_EQ(plugin_hint("cifar11", names), "");
  EXPECT_EQ(plugin_hint("cifar", names), "");
}

}  // namespace
}  // namespace pipewright
