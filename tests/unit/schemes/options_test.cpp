// SPDX-License-Identifier: Apache-2.0
// Schemes and their options: everything has a default and a help text, and what is wrong is
// recorded, never thrown.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/config/schema.h"
#include "core/schedule/prove.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

std::vector<std::string> scheme_names() {
  return Registry<Scheme>::instance().names();
}

std::string complaints(const std::string& scheme, const std::string& options) {
  const SchemeReading reading(scheme, options);
  std::string text;
  for (const Error& error : reading.problems.errors()) text += std::string(error.what()) + "\n";
  return text;
}

TEST(Schemes, AreRegisteredUnderTheirFileNames) {
  const std::vector<std::string> names = scheme_names();
  const std::set<std::string> known(names.begin(), names.end());
  for (const char* name : {"amdp",         "chimera",        "dualpipe",    "dualpipe_v",
                           "csv_schedule", "data_parallel",  "delayed_sgd", "features_replay",
                           "gpipe",        "hanayo",         "interleaved", "interlocking",
                           "lwp",          "model_parallel", "one_f_one_b", "paci",
                           "pipedream",    "pipedream_2bw",  "pipemare",    "pipeoptim",
                           "seq1f1b",      "spectrain",      "v_half",      "v_min",
                           "xpipe",        "zb_h1",          "zb_h2",       "zb_v"})
    EXPECT_TRUE(known.contains(name)) << name;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "schemes"))
    files.push_back(entry.path().filename());
  for (const std::string& name : names)
    EXPECT_EQ(std::ranges::count(files, name + ".cpp"), 1) << name;
}

TEST(Schemes, NeedNoOptions) {
  for (const std::string& name : scheme_names()) {
    if (name == "csv_schedule") continue;  // it needs a file
    SchemeReading reading(name, "{}");
    EXPECT_TRUE(reading.problems.empty()) << name;
    PipelineShape shape{.stages = name == "data_parallel" ? 1 : 2, .microbatches = 2};
    if (shares_workers(name)) shape = shape_that_shares(name, shape);
    EXPECT_NO_THROW(prove(reading.scheme->schedule(shape))) << name;
  }
}

TEST(Schemes, AnswerForTheSmallestPipeline) {
  for (const SchemeCase& each : every_scheme())
    EXPECT_NO_THROW(prove(schedule_of(each.name, each.options, {})))
        << each.name << " " << each.options;
}

TEST(Schemes, DescribeThemselves) {
  for (const std::string& name : scheme_names()) {
    const std::string& summary = Registry<Scheme>::instance().find(name)->summary;
    EXPECT_TRUE(summary.size() > 20 && summary.ends_with('.')) << name << ": " << summary;
    const std::vector<OptionInfo> options = declared_options(name);
    const std::string page = describe_options(options);
    for (const OptionInfo& option : options) {
      SCOPED_TRACE(name + "." + option.name);
      EXPECT_TRUE(option.help.size() > 20 && option.help.ends_with('.')) << option.help;
      const bool followed = name == "csv_schedule" && option.name == "file";
      EXPECT_EQ(option.required, followed);
      EXPECT_EQ(option.fallback.is(Value::Kind::Null), followed);
      EXPECT_NE(page.find(option.name), std::string::npos);
    }
  }
}

TEST(Schemes, SayWhatIsUnverified) {
  for (const char* scheme : {"chimera", "xpipe", "hanayo", "paci", "lwp", "features_replay"})
    EXPECT_NE(SchemeReading(scheme, "{}").scheme->remark().find("unverified"), std::string::npos);
}

TEST(Schemes, ReadTheSameOptionsWhateverTheirValues) {  // so that help and schema are complete
  for (const SchemeCase& each : every_scheme()) {
    std::set<std::string> with_defaults, with_values;
    for (const OptionInfo& info : declared_options(each.name)) with_defaults.insert(info.name);
    for (const OptionInfo& info : declared_options(each.name, each.options))
      with_values.insert(info.name);
    EXPECT_EQ(with_defaults, with_values) << each.name << " " << each.options;
  }
}

struct Bad {
  const char *scheme, *options, *complaint;
};

constexpr Bad kBad[] = {
    {"spectrain", "{version: 3}", "scheme.version"},
    {"spectrain", "{version: two}", "scheme.version"},
    {"spectrain", "{s_mode: exakt}", "did you mean 'exact'"},
    {"spectrain", "{velocity: [buffer]}", "scheme.velocity"},
    {"spectrain", "{as_coded: true}", "scheme.as_coded is true, which needs version: 2"},
    {"spectrain", "{prediction_lr: previous}", "expected next or last"},
    {"spectrain", "{version: 2, as_coded: true, prediction_lr: last}",
     "scheme.prediction_lr is last, but with as_coded: true nothing is predicted"},
    {"spectrain", "{verison: 1}", "did you mean 'version'"},
    {"pipedream", "{weight_stashing: 1}", "scheme.weight_stashing"},
    {"pipedream", "{vertical_sync: perhaps}", "scheme.vertical_sync"},
    {"pipedream", "{refill: false, weight_stashing: false}",
     "scheme.refill is false, which needs weight_stashing: true"},
    {"pipedream", "{refill: false, vertical_sync: true}",
     "scheme.refill is false, which needs vertical_sync: false"},
    {"spectrain", "{version: 2, refill: false}",
     "scheme.refill is false, which needs as_coded: true; otherwise nothing is stashed"},
    {"pipedream", "{in_flight: 0}", "scheme.in_flight is 0; expected a whole number of at least 1"},
    {"pipedream", "{in_flight: some}", "scheme.in_flight"},
    {"pipedream", "{in_flight: 1.5}", "scheme.in_flight"},
    {"pipedream", "{in_flight: 99999999999}", "scheme.in_flight"},
    {"pipedream", "{refill: false, in_flight: 2}",
     "scheme.in_flight is 2, which needs refill: true"},
    {"lwp", "{horizon: -1}", "scheme.horizon"},
    {"lwp", "{horizon: 1.5, unit: steps}",
     "scheme.horizon is 1.5; expected a whole number with unit: steps"},
    {"lwp", "{unit: updates}", "expected delay or steps"},
    {"hanayo", "{waves: 0}", "scheme.waves"},
    {"hanayo", "{chunks: 2}", "chunks"},
    {"seq1f1b", "{slices: 4}", "slices"},
    {"paci", "{weight_stashing: true}", "weight_stashing"},
    {"pipeoptim", "{s_offset: 2}", "scheme.s_offset"},
    {"pipeoptim", "{adamw_decay_in_prediction: 0.5}", "scheme.adamw_decay_in_prediction"},
    {"interlocking", "{width: 0}", "scheme.width"},
    {"interlocking", "{width: -1}", "scheme.width"},
    {"interlocking", "{width: some}", "a whole number of at least 1, or all"},
    {"interlocking", "{width: 1.5}", "scheme.width"},
    {"interlocking", "{width: 99999999999}", "scheme.width"},
    {"interlocking", "{combine: product}", "scheme.combine"},
    {"delayed_sgd", "{delay: -1}", "scheme.delay"},
    {"delayed_sgd", "{delay: [1, x]}", "f.yaml:1:13: scheme.delay[1] is 'x'"},
    {"delayed_sgd", "{delay: [1, [2]]}", "scheme.delay"},
    {"delayed_sgd", "{delay: 99999999999}", "scheme.delay"},
    {"delayed_sgd", "{delay: {a: 1}}", "scheme.delay"},
    {"delayed_sgd", "{delay: []}", "scheme.delay"},
    {"delayed_sgd", "{delay: some}", "or {law: …, mean: …}"},
    {"delayed_sgd", "{delay: {law: geometrical}}", "did you mean 'geometric'"},
    {"delayed_sgd", "{delay: {law: uniform, mean: -1}}", "f.yaml:1:30: scheme.delay.mean is -1"},
    {"delayed_sgd", "{delay: {law: uniform, mean: 1.3}}", "expected a multiple of 0.5"},
    {"delayed_sgd", "{delay: {law: fixed, mean: 1.5}}",
     "expected a whole number for the law fixed"},
    {"delayed_sgd", "{delay: {law: uniform, mean: 2000000}}", "scheme.delay.mean is 2000000"},
    {"delayed_sgd", "{delay: {law: uniform, means: 1}}", "did you mean 'mean'"},
    {"delayed_sgd", "{delay: {law: uniform, seed: 0.5}}", "scheme.delay.seed is 0.5"},
    {"gpipe", "{microbatches: 4}", "microbatches"},
    {"pipemare", "{decay: 2}", "scheme.decay"},
    {"pipemare", "{annealing: -1}", "scheme.annealing"},
    {"pipemare", "{warmup: some}", "scheme.warmup"},
    {"interleaved", "{chunks: 0}", "scheme.chunks"},
    {"zb_h1", "{chunks: two}", "scheme.chunks"},
    {"zb_h2", "{chunks: 2}", "chunks"},
    {"xpipe", "{version: 1}", "version"},
};

TEST(Schemes, RecordBadOptionsWithTheirPlaceInsteadOfThrowing) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(concat(bad.scheme, " ", bad.options));
    std::string text;
    ASSERT_NO_THROW(text = complaints(bad.scheme, bad.options));
    EXPECT_NE(text.find(bad.complaint), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with("f.yaml:1:")) << text;
  }
}

TEST(Schemes, GoOnWithTheDefaultAfterABadOption) {
  for (const Bad& bad : kBad) {
    const SchemeReading reading(bad.scheme, bad.options);
    ASSERT_NE(reading.scheme, nullptr);
    EXPECT_NO_THROW(prove(reading.scheme->schedule({}))) << bad.scheme << " " << bad.options;
  }
}

TEST(DelayedSgd, WantsADelayPerStage) {
  try {
    schedule_of("delayed_sgd", "{delay: [2, 1]}", {.stages = 3});
    FAIL() << "two delays were accepted for three stages";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_STREQ(error.what(), "scheme.delay has 2 numbers for 3 stages; expected one per stage");
  }
}

}  // namespace
}  // namespace pipewright
