// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_watch.h"

#include "core/base/text.h"
#include "core/system/folder_lock.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

using Lines = std::vector<std::string>;

class Watching : public RunFolders {};

TEST_F(Watching, TellsWhatTheFilesOfEachRunSay) {
  run("a-0123456789abcdef", "a", "done", "{name: x}");
  run("b", "b", "interrupted", "{name: x}");
  run("c", "c", "running", "{name: x}");
  put("d/point.json", "{\"label\": \"d\", \"varied\": {}, \"error\": \"killed by signal 9\"}");
  put("e/point.json", "{\"label\": \"e\", \"varied\": {}}");
  put("no run/notes.txt", "mine");
  const WatchedSweep sweep = look_at(root_);
  EXPECT_FALSE(sweep.at_work);
  EXPECT_EQ(state_text(sweep), "1 done, 1 failed, 2 interrupted, 1 waiting")
      << "c says that it is running, and no process is";
  EXPECT_EQ(changes_since({}, sweep), (Lines{"a: done", "b: interrupted", "c: interrupted",
                                             "d: failed, killed by signal 9", "e: waiting"}));
  EXPECT_EQ(changes_since(sweep, sweep), Lines());
}

TEST_F(Watching, RunsOfOneLabelAreToldApartByTheirFolders) {
  run("old-0123456789abcdef", "old", "done", "{name: x}");
  run("old-fedcba9876543210", "old", "interrupted", "{name: x}");
  const WatchedSweep sweep = look_at(root_);
  EXPECT_EQ(changes_since({}, sweep),
            (Lines{"old-0123456789abcdef: done", "old-fedcba9876543210: interrupted"}));
  EXPECT_EQ(changes_since(sweep, sweep), Lines()) << "nothing has changed";
}

TEST_F(Watching, ASecondRunOfALabelDoesNotTellTheFirstAgain) {
  run("old-0123456789abcdef", "old", "done", "{name: x}");
  const WatchedSweep before = look_at(root_);
  run("old-fedcba9876543210", "old", "done", "{name: x}");
  EXPECT_EQ(changes_since(before, look_at(root_)), Lines{"old-fedcba9876543210: done"});
}

TEST_F(Watching, ARunInWhichAProcessWorksIsRunningAndHowFar) {
  run("c", "c", "running", "{name: x}");
  put("c/log.txt", "epoch 2/5  loss 2.30\n");
  const FolderLock lock(root_ / "c", {.adopt = true});
  const WatchedSweep sweep = look_at(root_);
  EXPECT_TRUE(sweep.at_work);
  EXPECT_EQ(state_text(sweep), "1 running; running: c 40 %");
  EXPECT_EQ(state_text(look_at(root_ / "c")), "1 running; running: c 40 %") << "of one run";
}

TEST_F(Watching, AFolderWithoutRunsIsRefusedUnlessSomebodyWorksThere) {
  EXPECT_NE(error_text([&] { look_at(root_ / "none"); }).find("is no folder"), std::string::npos);
  EXPECT_NE(error_text([&] { look_at(root_); }).find("has no runs"), std::string::npos);
  const FolderLock lock(root_);
  EXPECT_TRUE(look_at(root_).at_work);
  EXPECT_EQ(state_text(look_at(root_)), "no run yet");
}

}  // namespace
}  // namespace pipewright
