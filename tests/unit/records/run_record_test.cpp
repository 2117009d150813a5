// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_record.h"
#include "core/records/leftover_runs.h"
#include "core/records/other_contents.h"

#include "core/system/folder_lock.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class Outcomes : public RunFolders {};

// A killed run cannot record its end; whoever reads its folder must not wait for it.
TEST_F(Outcomes, ARunThatSaysThatItGoesOnIsInterruptedUnlessAProcessHoldsItsFolder) {
  EXPECT_EQ(run("a", "a", "running", "{name: x}").state, "interrupted");
  const FolderLock lock(root_ / "a", {.adopt = true});
  EXPECT_EQ(read_outcome(root_ / "a").state, "running");
}

TEST_F(Outcomes, WhatASweepHasRecordedOfAKilledRunCountsMore) {
  run("a", "a", "running", "{name: x}");
  write_point(root_ / "a", {1, "a", Value::mapping(), {}, "killed by signal 9"});
  const RunOutcome outcome = read_outcome(root_ / "a");
  EXPECT_EQ(outcome.state, "failed");
  EXPECT_EQ(outcome.error, "killed by signal 9");
  EXPECT_EQ(outcome.fault, "") << "its files can be read";
}

TEST_F(Outcomes, RunsOfOneFileWithAnotherContentAreTold) {
  const auto run_with = [&](const std::string& name, const std::string& file,
                            const std::string& digest) {
    run(name, name, "done", "{dataset: {file: " + file + "}}");
    put(name + "/run.json",
        R"({"state": "done", "contents": {"dataset.file": ")" + digest + R"("}})");
    return read_run(root_ / name);
  };
  const RunRecord a = run_with("a", "x.csv", "sha256:1"), b = run_with("b", "x.csv", "sha256:1"),
                  c = run_with("c", "y.csv", "sha256:2"), d = run_with("d", "x.csv", "sha256:2");
  EXPECT_TRUE(other_contents({a, b, c}).empty()) << "c has another file";
  EXPECT_EQ(other_contents({a, b, c, d, d}),
            std::vector<std::string>{"dataset.file is x.csv, which had another content when 'd' "
                                     "was trained than when 'a' was"});
}

TEST_F(Outcomes, ALeftoverOfAnotherFileOfThatNameIsNotOurs) {
  for (const char* name : {"ours", "theirs", "nobodys"}) {
    run(name, name, "done", "{name: x}");
    put(std::string(name) + "/.pipewright", "");
  }
  write_point(root_ / "ours", {1, "ours", Value::mapping(), "/home/a.yaml", {}});
  write_point(root_ / "theirs", {1, "theirs", Value::mapping(), "/home/b.yaml", {}});
  EXPECT_EQ(leftovers_of("", "/home/a.yaml", root_, {}),
            (std::vector{root_ / "nobodys", root_ / "ours"}));
}

TEST_F(Outcomes, AFileThatCannotBeReadIsAFaultWithItsName) {
  const std::string whole = accuracies({"0.5", "0.75"});
  EXPECT_EQ(run("a", "a", "done", "{name: x}", whole).fault, "");
  const RunRecord cut = run("b", "b", "done", "{name: x}", whole.substr(0, whole.size() - 12));
  EXPECT_EQ(cut.state, "failed");
  EXPECT_NE(cut.fault.find("b/epochs.csv"), std::string::npos) << cut.fault;
  EXPECT_EQ(cut.error, cut.fault);
  put("c/run.json", "{");
  EXPECT_NE(read_outcome(root_ / "c").fault.find("c/run.json: is no JSON"), std::string::npos);
}

}  // namespace
}  // namespace pipewright
