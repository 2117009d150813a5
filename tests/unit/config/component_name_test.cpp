// SPDX-License-Identifier: Apache-2.0
// Names of runs and labels are one component of a path and nothing else.
#include "core/config/component_name.h"

#include <gtest/gtest.h>

namespace pipewright {
namespace {

/// "" for a name that is taken.
std::string fault(const std::string& text) {
  Value value = Value::of(text);
  value.place = {"f.yaml", 3, 7};
  Problems problems;
  check_component_name(value, "name", problems);
  return problems.empty() ? std::string() : problems.errors().front().what();
}

TEST(ComponentName, IsMadeOfLettersDigitsAndFewOthers) {
  for (const char* const name : {"a", "PD4", "8 bits sort 6-2", "x.y_z", ".hidden", "...", "-"})
    EXPECT_EQ(fault(name), "") << name;
  EXPECT_EQ(fault(std::string(100, 'x')), "");
}

TEST(ComponentName, IsRefusedWithItsPlaceAndTheCharacter) {
  const std::string end =
      "; it names a folder, so expected are at most 100 letters (a-z, A-Z), digits, '-', '_', '.' "
      "and spaces between them";
  EXPECT_EQ(fault("a/b"), "f.yaml:3:7: name has '/' in it" + end);
  EXPECT_EQ(fault("\x1b[31m"), "f.yaml:3:7: name has U+001B in it" + end);
  EXPECT_EQ(fault("größe"), "f.yaml:3:7: name has U+00F6 in it" + end);
  EXPECT_EQ(fault("\U0001F600"), "f.yaml:3:7: name has U+1F600 in it" + end);
  EXPECT_EQ(fault("\xff"), "f.yaml:3:7: name has U+00FF in it" + end);
  EXPECT_EQ(fault(std::string("a\0b", 3)), "f.yaml:3:7: name has U+0000 in it" + end);
  EXPECT_EQ(fault(".."), "f.yaml:3:7: name is '..'" + end);
  EXPECT_EQ(fault("."), "f.yaml:3:7: name is '.'" + end);
  EXPECT_EQ(fault(""), "f.yaml:3:7: name is empty" + end);
  EXPECT_EQ(fault(" a"), "f.yaml:3:7: name begins or ends with a space" + end);
  EXPECT_EQ(fault(std::string(101, 'x')), "f.yaml:3:7: name is 101 bytes long" + end);
}

TEST(ComponentName, IsMadeOfAnyText) {
  EXPECT_EQ(component_name_of("spectrain-1-4-0.05-1"), "spectrain-1-4-0.05-1");
  EXPECT_EQ(component_name_of("a_ b"), "a_ b");
  EXPECT_EQ(component_name_of("[4, 4]"), "_4_4_");
  EXPECT_EQ(component_name_of("größe (2)"), "gr_e _2_");
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("/"), std::string(" x "),
        std::string("../../x"), std::string(100'000, '/'), std::string(300, 'x'),
        std::string(99, 'x') + " y", std::string("\xff\x00\x1b", 3)})
    EXPECT_EQ(fault(component_name_of(text)), "") << text.substr(0, 20);
}

}  // namespace
}  // namespace pipewright
