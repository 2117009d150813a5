// SPDX-License-Identifier: Apache-2.0
#include "core/exports/differing_options.h"

#include <gtest/gtest.h>

#include "core/base/text.h"

namespace pipewright {
namespace {

using Keys = std::vector<std::string>;

RunRecord run_of(const std::string& config, const std::string& varied) {
  RunRecord run;
  run.config = parse_yaml(config, "x.yaml");
  run.varied = parse_yaml(varied, "x.json");
  return run;
}

/// A run of a sweep over schemes, of which one has an option, and seeds.
RunRecord swept(const std::string& scheme, int seed, const std::string& lr) {
  const char* const option = scheme == "spectrain" ? ", version: 2" : "";
  return run_of(concat("{name: x, scheme: {name: ", scheme, std::string_view(option),
                       "}, optimizer: {lr: ", lr, "}, train: {seed: ", seed, "}}"),
                concat("{scheme.name: ", scheme, ", train.seed: ", seed, "}"));
}

Keys keys_of(const std::vector<RunRecord>& runs) {
  std::vector<const RunRecord*> all;
  for (const RunRecord& run : runs) all.push_back(&run);
  return differing_options(all);
}

TEST(DifferingOptions, AreNoneInAWholeSweep) {
  EXPECT_EQ(keys_of({swept("gpipe", 1, "0.1"), swept("gpipe", 2, "0.1"),
                     swept("spectrain", 1, "0.1"), swept("spectrain", 2, "0.1")}),
            Keys());
  const auto on = [](const char* data, const char* classes) {
    return run_of(concat("{dataset: {name: ", std::string_view(data),
                         "}, model: {classes: ", std::string_view(classes), "}}"),
                  concat("{dataset.name: ", std::string_view(data), "}"));
  };
  EXPECT_EQ(keys_of({on("digits", "10"), on("cifar100", "100")}), Keys());
}

TEST(DifferingOptions, TellVersionsOfTheFileApart) {
  EXPECT_EQ(keys_of({swept("gpipe", 1, "0.1"), swept("gpipe", 1, "0.2")}), Keys{"optimizer.lr"});
  EXPECT_EQ(keys_of({swept("gpipe", 1, "0.1"), swept("gpipe", 2, "0.2")}), Keys{"optimizer.lr"});
  EXPECT_EQ(keys_of({swept("gpipe", 1, "0.1"), swept("spectrain", 1, "0.2")}),
            Keys{"optimizer.lr"});
  RunRecord other = swept("spectrain", 1, "0.1");
  const std::string version =
      "{name: x, scheme: {name: spectrain, version: 1}, optimizer: {lr: "
      "0.1}, train: {seed: 1}}";
  other.config = parse_yaml(version, "x.yaml");
  EXPECT_EQ(keys_of({swept("spectrain", 1, "0.1"), other}), Keys{"scheme.version"})
      << "an option of the scheme does not follow from its name";
}

TEST(DifferingOptions, AreNoNamesAndNothingThatARunMeasures) {
  const auto named = [](const char* name, const char* balance) {
    return run_of(concat("{name: ", std::string_view(name), ", output: {trace: true}, pipeline: ",
                         "{balance: ", std::string_view(balance), "}}"),
                  "{}");
  };
  EXPECT_EQ(keys_of({named("a", "[1, 2]"), named("b", "[2, 1]")}), Keys());
}

TEST(DifferingOptions, AreAddedToWhatASweepVaries) {
  std::vector<RunRecord> runs{swept("gpipe", 1, "0.1"), swept("gpipe", 1, "0.2")};
  add_differing_options(runs);
  EXPECT_EQ(runs[1].varied.at_or_add("optimizer.lr"), Value::of(0.2));
  std::vector<RunRecord> alone{run_of("{optimizer: {lr: 1}}", "{}"),
                               run_of("{optimizer: {lr: 2}}", "{}")};
  add_differing_options(alone);
  EXPECT_TRUE(alone[0].varied.fields.empty()) << "runs of no sweep have their names";
}

}  // namespace
}  // namespace pipewright
