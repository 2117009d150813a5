// SPDX-License-Identifier: Apache-2.0
// `balance: time | memory`: decided once, by a profile that fits, and recorded as a list.
#include "core/experiment/reading.h"
#include "core/measuring/measured_layout.h"

#include "core/measuring/profiling.h"
#include "core/tensors/torch.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

using Sizes = std::vector<std::int64_t>;

class MeasuredBalances : public RunFolders {
 protected:
  Experiment experiment(const std::string& changes) const {
    return read_experiment(small_document(changes));
  }

  /// As one would measure the four layers if they took so long.
  void put_profile(const std::filesystem::path& file, const Experiment& e,
                   const std::vector<double>& seconds) const {
    Profile profile = measure(e, {.repetitions = 1});
    for (std::size_t i = 0; i < seconds.size(); ++i)
      profile.layers[i].forward = profile.layers[i].backward = profile.layers[i].backward_weight =
          seconds[i];
    for (LayerCost& layer : profile.layers) layer.update = 0;  // measured, it would break ties
    put(file.string(), to_yaml(profile_value(profile)));
  }

  /// The cut, and what was told while it was settled.
  Sizes settled(const Experiment& e, const std::filesystem::path& recorded = {},
                bool of_sweep = false) {
    Team alone;
    told.clear();
    last = e.with(settle_layout(e,
                                {.runs = root_,
                                 .recorded = recorded,
                                 .tell = [&](const std::string& text) { told += text + "\n"; },
                                 .of_sweep = of_sweep},
                                alone));
    return last.layout.balance;
  }

  std::string told;
  Experiment last;  ///< with its cut
};

constexpr const char* kByTime = "{pipeline.stages: 2, pipeline.balance: time}";

TEST_F(MeasuredBalances, AreMeasuredOnceForAllRunsOfAFolder) {
  const Experiment e = experiment(kByTime);
  const Sizes cut = settled(e);
  EXPECT_EQ(cut.size(), 2U);
  EXPECT_TRUE(told.starts_with("measuring the 4 layers of mlp for pipeline.balance, into "))
      << told;
  EXPECT_TRUE(std::filesystem::exists(profile_path(e, at::kCPU, root_)));
  EXPECT_EQ(settled(e), cut);
  EXPECT_EQ(told.find("measuring"), std::string::npos);
}

/// Schemes with micro-batches of another size have another profile, and would be compared with
/// other stages.
TEST_F(MeasuredBalances, AreOneForTheRunsOfASweepUnlessEachIsAskedFor) {
  const std::string two = "{pipeline.stages: 2, pipeline.balance: time, pipeline.microbatches: 2";
  const Experiment first = experiment(kByTime), second = experiment(two + "}");
  put_profile(profile_path(first, at::kCPU, root_), first, {1, 1, 1, 10});
  put_profile(profile_path(second, at::kCPU, root_), second, {10, 1, 1, 1});
  ASSERT_NE(profile_path(first, at::kCPU, root_), profile_path(second, at::kCPU, root_));
  EXPECT_EQ(settled(second), (Sizes{1, 3})) << "of a run by itself";
  EXPECT_EQ(settled(first, {}, true), (Sizes{3, 1}));
  EXPECT_EQ(settled(second, {}, true), (Sizes{3, 1}));
  EXPECT_NE(told.find("[3, 1], as for all runs of the sweep"), std::string::npos) << told;
  EXPECT_EQ(settled(experiment(two + ", pipeline.cut.each: true}"), {}, true), (Sizes{1, 3}));
  const std::string three = "{pipeline.stages: 3, pipeline.balance: time}";
  EXPECT_EQ(settled(experiment(three), {}, true).size(), 3U) << "another number of stages";
  EXPECT_EQ(first.digest, experiment("{pipeline.stages: 2, pipeline.balance: time, "
                                     "pipeline.cut.each: false}")
                              .digest);
}

TEST_F(MeasuredBalances, AreRecordedAsTheListThatResults) {
  const Experiment e = experiment(kByTime);
  put_profile(profile_path(e, at::kCPU, root_), e, {1, 1, 1, 10});
  EXPECT_EQ(settled(e), (Sizes{3, 1}));
  EXPECT_EQ(*last.resolved.find_path("pipeline.balance"), parse_yaml("[3, 1]", "list"));
  EXPECT_EQ(read_experiment(last.resolved).layout.balance, (Sizes{3, 1}));
}

TEST_F(MeasuredBalances, OfARunToBeResumedStayWhatTheyWere) {
  const Experiment e = experiment(kByTime);
  put_profile(profile_path(e, at::kCPU, root_), e, {1, 1, 1, 10});
  const auto recorded = put("run/experiment.yaml", "pipeline: {balance: [1, 3]}");
  EXPECT_EQ(settled(e, recorded), (Sizes{1, 3}));
  const Experiment three = experiment("{pipeline.stages: 3, pipeline.balance: time}");
  EXPECT_EQ(settled(three, recorded), (Sizes{1, 2, 1}));  // for two stages only
}

TEST_F(MeasuredBalances, TakeTheProfileThatIsNamedOrSayWhyNot) {
  const Experiment e = experiment(kByTime);
  put_profile("mine.yaml", e, {10, 1, 1, 1});
  const std::string named = concat(", pipeline.cut.profile: ", (root_ / "mine.yaml").string(), "}");
  const Experiment good = experiment("{pipeline.stages: 2, pipeline.balance: time" + named);
  EXPECT_EQ(settled(good), (Sizes{1, 3}));
  const Experiment stale =
      experiment("{pipeline.stages: 2, loader.batch_size: 4, pipeline.balance: time" + named);
  try {
    settled(stale);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("does not fit: it is of micro-batches of 8 samples, this "
                                   "experiment has 4; make it anew with `pipewright profile`"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(MeasuredBalances, KeepToTheMemoryOfAWorker) {
  const Experiment e =
      experiment("{pipeline.stages: 2, pipeline.balance: time, pipeline.cut.memory: 100}");
  try {
    settled(e);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message().substr(0, 32), "no cut into 2 stages fits into 1");
  }
}

}  // namespace
}  // namespace pipewright::test
