// SPDX-License-Identifier: Apache-2.0
#include "core/config/experiment_keys.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/experiment/catalogue.h"
#include "core/experiment/experiment.h"

namespace pipewright {
namespace {

/// The options of a run are what the table says they are, and no others.
TEST(ExperimentKeys, NameEverySectionThereIs) {
  std::set<std::string> read, known;
  for (const OptionInfo& option : experiment_options()) read.insert(option.name);
  for (const ExperimentKey& key : experiment_keys())
    if (key.use == KeyUse::Option) known.insert(key.name);
  EXPECT_EQ(read, known);
}

TEST(ExperimentKeys, AreOfOneUseEach) {
  Value document = Value::mapping();
  for (const ExperimentKey& key : experiment_keys()) document.at_or_add(key.name) = Value::of("x");
  EXPECT_EQ(document.fields.size(), experiment_keys().size());
  document.at_or_add("unknown") = Value::of("x");
  for (const char* key : {"extends", "profiles", "sweep", "table", "plot", "claims"}) {
    EXPECT_EQ(what_may_vary(document).find(key), nullptr) << key;
    EXPECT_EQ(options_of_run(document).find(key), nullptr) << key;
  }
  EXPECT_NE(what_may_vary(document).find("hardware"), nullptr);
  EXPECT_EQ(options_of_run(document).find("hardware"), nullptr);
  for (const char* key : {"name", "scheme", "unknown"})
    EXPECT_NE(options_of_run(document).find(key), nullptr) << key;
}

}  // namespace
}  // namespace pipewright
