// SPDX-License-Identifier: Apache-2.0
#include "core/config/experiment_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/experiment/experiment.h"

namespace pipewright {
namespace {

TEST(ExperimentKeys, NameEverySectionThereIs) {
  for (const OptionInfo& option : experiment_options())
    EXPECT_EQ(std::ranges::count(experiment_keys(), option.name), 1) << option.name;
}

}  // namespace
}  // namespace pipewright
