// SPDX-License-Identifier: Apache-2.0
// `memory_format: auto`: measured once, recorded as the format that results, and kept by a run that
// is resumed.
#include "core/experiment/reading.h"
#include "core/measuring/measured_layout.h"

#include "core/measuring/profiling.h"
#include "core/tensors/torch.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

constexpr const char* kAutomatic =
    "{pipeline.memory_format: auto, model: {name: cnn, width: 0.125, size: 8, channels: 1, "
    "classes: 3}}";

class MeasuredFormats : public RunFolders {
 protected:
  static Experiment experiment(const std::string& changes) {
    return read_experiment(small_document(changes));
  }

  /// As one would measure the model if every layer took so long in that format.
  void put_profile(bool channels_last, double seconds) const {
    Experiment e = experiment(kAutomatic);
    e.layout.channels_last = channels_last;
    Profile profile = measure(e, {.repetitions = 1});
    for (LayerCost& layer : profile.layers) layer.forward = layer.backward = seconds;
    put(profile_path(e, at::kCPU, root_).string(), to_yaml(profile_value(profile)));
  }

  /// The format that is recorded, and what was told while it was settled.
  std::string settled(const Experiment& given, const std::filesystem::path& recorded = {}) {
    Team alone;
    told.clear();
    last = given.with(settle_layout(given,
                                    {.runs = root_,
                                     .recorded = recorded,
                                     .tell = [&](const std::string& text) { told += text + "\n"; }},
                                    alone));
    const std::string format = last.resolved.find_path("pipeline.memory_format")->text;
    EXPECT_EQ(last.layout.channels_last, format == "channels_last");
    return format;
  }

  std::string told;
  Experiment last;  ///< with what has been settled
};

TEST_F(MeasuredFormats, AreTheFasterOfBoth) {
  put_profile(false, 2);
  put_profile(true, 1);
  EXPECT_EQ(settled(experiment(kAutomatic)), "channels_last");
  EXPECT_TRUE(
      told.starts_with("pipeline.memory_format: auto gives channels_last: a micro-batch "
                       "takes "))
      << told;
  put_profile(true, 3);
  EXPECT_EQ(settled(experiment(kAutomatic)), "contiguous");
  EXPECT_FALSE(read_experiment(last.resolved).layout.open());
}

TEST_F(MeasuredFormats, AreMeasuredOnceForAllRunsOfAFolder) {
  const Experiment e = experiment(kAutomatic);
  const std::string format = settled(e);
  std::size_t measured = 0;
  for (std::size_t at = 0; (at = told.find("measuring", at)) != std::string::npos; ++at) ++measured;
  EXPECT_EQ(measured, 2U) << told;
  EXPECT_EQ(settled(e), format);
  EXPECT_EQ(told.find("measuring"), std::string::npos);
}

TEST_F(MeasuredFormats, OfARunToBeResumedStayWhatTheyWere) {
  put_profile(false, 2);
  put_profile(true, 1);
  for (const char* format : {"contiguous", "channels_last"}) {
    const auto recorded =
        put("run/experiment.yaml", concat("pipeline: {memory_format: ", format, "}"));
    EXPECT_EQ(settled(experiment(kAutomatic), recorded), format);
    EXPECT_EQ(told, "");
  }
  const Experiment e = experiment(kAutomatic);
  EXPECT_EQ(settled(e, put("run/experiment.yaml", "pipeline: {stages: 4}")), "contiguous")
      << "the run is older than the option";
}

TEST_F(MeasuredFormats, OfModelsWithoutConvolutionsAreContiguousWithoutMeasuring) {
  const Experiment automatic = experiment("{pipeline.memory_format: auto}");
  EXPECT_EQ(settled(automatic), "contiguous");
  EXPECT_EQ(told, "");
  EXPECT_EQ(memory_format_remark(last), "");
  const Experiment wanted = experiment("{pipeline.memory_format: channels_last}");
  EXPECT_EQ(wanted.layout.channels_last, false);
  EXPECT_EQ(memory_format_remark(wanted),
            "pipeline.memory_format is channels_last, which changes nothing, because the model has "
            "no convolutions");
}

TEST_F(MeasuredFormats, ComeBeforeTheCutWhichIsMeasuredInThem) {
  put_profile(false, 2);
  put_profile(true, 1);
  const Experiment e = experiment(
      "{pipeline.memory_format: auto, pipeline.balance: time, pipeline.stages: 2, model: "
      "{name: "
      "cnn, width: 0.125, size: 8, channels: 1, classes: 3}}");
  EXPECT_EQ(settled(e), "channels_last");
  EXPECT_EQ(last.layout.balance.size(), 2U);
  EXPECT_EQ(told.find("measuring"), std::string::npos) << told;
}

}  // namespace
}  // namespace pipewright::test
