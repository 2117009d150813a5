// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/other_names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/registry.h"
#include "core/schedule/schedule.h"

namespace pipewright {
namespace {

TEST(OtherNames, NameSchemesThatThereAreOrSayWhatToDo) {
  const auto known = Registry<Scheme>::instance().names();
  for (const OtherName& each : other_names()) {
    if (each.scheme.empty())
      EXPECT_NE(each.remark, "") << each.name;
    else
      EXPECT_GT(std::ranges::count(known, std::string(each.scheme)), 0) << each.name;
  }
}

TEST(OtherNames, AreExplainedWhateverTheirCase) {
  EXPECT_EQ(explain_other_name("schedule1f1b"), "'1F1B' of PyTorch is the scheme one_f_one_b here");
  EXPECT_EQ(explain_other_name("1F1B"), explain_other_name("Schedule1F1B"));
  EXPECT_EQ(explain_other_name("LoopedBFS"),
            "'LoopedBFS' of PyTorch is no scheme here; the scheme csv_schedule reads the table "
            "of actions that PyTorch writes of it");
  EXPECT_EQ(explain_other_name("pipedream"), "");
}

TEST(OtherNames, OfASchemeAreListedByProject) {
  EXPECT_EQ(other_names_of("one_f_one_b"),
            "PyTorch: 1F1B; DeepSpeed: TrainSchedule; Megatron-LM: "
            "forward_backward_pipelining_without_interleaving");
  EXPECT_EQ(other_names_of("spectrain"), "");
}

}  // namespace
}  // namespace pipewright
