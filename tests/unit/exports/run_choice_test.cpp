// SPDX-License-Identifier: Apache-2.0
#include "core/exports/run_choice.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/config/value.h"

namespace pipewright {
namespace {

RunRecord run_of(const std::string& scheme, int seed, const std::string& lr) {
  RunRecord run;
  run.folder = concat("runs/x/", scheme, "-", seed);
  run.label = concat(scheme, " ", seed);
  run.state = "done";
  const std::string text =
      concat("{model: {name: mlp, seed: 7}, scheme: {name: ", scheme, "}, optimizer: {lr: ", lr,
             "}, pipeline: {placement: [0, 1]}, train: {seed: ", seed, "}}");
  run.config = parse_yaml(text, "x.yaml");
  run.varied = Value::mapping();
  run.varied.at_or_add("scheme.name") = Value::of(scheme);
  run.varied.at_or_add("train.seed") = Value::of(seed);
  run.varied.at_or_add("label") = Value::of(run.label);
  return run;
}

const std::vector<RunRecord>& runs() {
  static const std::vector<RunRecord> all{run_of("gpipe", 1, "0.1"), run_of("gpipe", 2, "0.1"),
                                          run_of("pipedream", 1, "0.1"),
                                          run_of("pipedream", 2, "0.1")};
  return all;
}

std::string chosen(const std::string& settings) {
  try {
    return chosen_run(runs(), settings).folder.filename().string();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.what();
  }
}

TEST(RunChoice, FindsTheRunWithAllSettings) {
  EXPECT_EQ(chosen("scheme.name=pipedream,train.seed=2"), "pipedream-2");
  EXPECT_EQ(chosen("seed=1,scheme=gpipe"), "gpipe-1") << "an end that varies, and a part's name";
  EXPECT_EQ(chosen("label=gpipe 2"), "gpipe-2");
  EXPECT_EQ(chosen("placement=[0, 1],lr=1e-1,seed=2.0,scheme=gpipe,state=done"), "gpipe-2");
}

TEST(RunChoice, SaysWhatSeveralRunsDifferIn) {
  EXPECT_EQ(chosen("scheme=gpipe"),
            "--where: 2 runs have scheme.name=gpipe; they differ in train.seed (1, 2)");
  EXPECT_EQ(chosen("lr=0.1"),
            "--where: 4 runs have optimizer.lr=0.1; they differ in scheme.name (gpipe, "
            "pipedream), train.seed (1, 2)");
}

TEST(RunChoice, SaysWhatRunsHaveWhereNoneFits) {
  EXPECT_EQ(chosen("seed=3"), "--where: no run has train.seed=3; its values are 1, 2");
  EXPECT_EQ(chosen("scheme=gpipe,seed=3"),
            "--where: no run with scheme.name=gpipe has train.seed=3; its values are 1, 2");
  EXPECT_EQ(chosen("optimizer.l=3"),
            "--where: no run has an option 'optimizer.l'; did you mean 'optimizer.lr'?");
  EXPECT_EQ(chosen("name=mlp"),
            "--where: no run has scheme.name=mlp; its values are gpipe, pipedream");
  EXPECT_EQ(chosen("pipedream"),
            "--where: 'pipedream' is no KEY=VALUE; expected settings such as seed=2");
}

TEST(RunChoice, NamesRunsByWhatTheyDifferIn) {
  EXPECT_EQ(distinguishing_settings(runs()).back(), "scheme.name=pipedream,train.seed=2");
  const std::vector<RunRecord> versions{run_of("gpipe", 1, "0.1"), run_of("gpipe", 1, "0.2")};
  EXPECT_EQ(distinguishing_settings(versions),
            (std::vector<std::string>{"optimizer.lr=0.1", "optimizer.lr=0.2"}));
  const std::vector<RunRecord> one{runs().front()};
  EXPECT_EQ(distinguishing_settings(one), std::vector<std::string>{""});
}

}  // namespace
}  // namespace pipewright
