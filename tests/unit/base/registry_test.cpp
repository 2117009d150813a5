// SPDX-License-Identifier: Apache-2.0
// Parts that register themselves under the word an experiment file uses.
#include "core/base/registry.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

struct Sound {
  virtual ~Sound() = default;
  virtual std::string heard() const = 0;
};

struct Bark final : Sound {
  explicit Bark(Options&) {}
  std::string heard() const override { return "woof"; }
};

PIPEWRIGHT_REGISTER(Sound, bark, Bark, "What dogs say.")

TEST(Registry, AMacroIsEnoughToBeFound) {
  const auto* entry = Registry<Sound>::instance().find("bark");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->summary, "What dogs say.");
}

TEST(Registry, AnUnknownNameIsNotFound) {
  EXPECT_EQ(Registry<Sound>::instance().find("Bark"), nullptr);
  EXPECT_EQ(Registry<Sound>::instance().find(""), nullptr);
}

TEST(Registry, NamesAreInOrderWhateverTheOrderOfRegistration) {
  Registry<Sound> registry;
  for (const char* name : {"moo", "bark", "quack"}) registry.add(name, "", {});
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"bark", "moo", "quack"}));
}

TEST(Registry, TheSecondPartOfANameIsABugAndTheFirstStays) {
  Registry<Sound> registry;
  registry.add("moo", "first", {});
  try {
    registry.add("moo", "second", {});
    FAIL() << "a duplicate was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Bug);
    EXPECT_NE(error.message().find("two parts are named 'moo'"), std::string::npos);
  }
  EXPECT_EQ(registry.find("moo")->summary, "first");
}

TEST(Registry, EachKindOfPartHasItsOwn) {
  struct Smell {};
  EXPECT_TRUE(Registry<Smell>::instance().names().empty());
}

}  // namespace
}  // namespace pipewright
