// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/sweep_runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "core/system/child_process.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

/// Runs are shell scripts here: called as `run FILE --out DIR --resume`, so $4 is the folder.
class Sweep : public RunFolders {
 protected:
  static constexpr const char* kDone =
      R"(echo '{"state": "done", "digest": "d1"}' > "$4/run.json")";

  Sweep() {
    const FolderLock ours(root_);
    write_file(root_ / "notes.txt", "");  // a folder that stays empty is given back
    settings_.out = root_;
    settings_.jobs = 1;
    output_ = std::tmpfile();
  }
  ~Sweep() override { std::fclose(output_); }

  PlannedRun planned(const std::string& title) const {
    return {{.resolved = parse_yaml("{name: " + title + "}", "x"), .digest = "d1"},
            1,
            title,
            title,
            Value::mapping(),
            root_ / title};
  }

  SweepResult sweep(const std::string& script, const std::vector<PlannedRun>& runs) {
    settings_.program = {"/bin/sh", put("script.sh", script).string()};
    SweepProgress progress(output_, false, runs.size(), 0);
    return run_sweep(runs, settings_, progress, FolderLock(root_));
  }

  /// What the progress has printed.
  std::string printed() const {
    std::string text(static_cast<std::size_t>(std::ftell(output_)), '\0');
    std::rewind(output_);
    text.resize(std::fread(text.data(), 1, text.size(), output_));
    return text;
  }

  SweepSettings settings_;
  std::FILE* output_;
};

TEST_F(Sweep, GivesEachRunItsFileFolderAndLog) {
  const SweepResult result =
      sweep(concat("cat \"$2\"; echo \"$1 $3 $5\" >&2\n", kDone), {planned("a")});
  EXPECT_EQ(result.done, 1u);
  EXPECT_EQ(read_file(root_ / "a" / "log.txt"), "name: a\nrun --out --resume\n");
  EXPECT_EQ(read_run(root_ / "a").label, "a");
}

TEST_F(Sweep, OneFailureStopsNobody) {
  const std::string script =
      concat("case $4 in */b) echo first; echo the reason >&2; exit 3;; esac\n", kDone);
  const SweepResult result = sweep(script, {planned("a"), planned("b"), planned("c")});
  EXPECT_EQ(result.done, 2u);
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_EQ(result.failed[0].title, "b");
  EXPECT_EQ(result.failed[0].outcome, "exit code 3");
  EXPECT_EQ(result.failed[0].last_line, "the reason");
}

/// --overwrite of the sweep would begin the finished runs anew, too.
TEST_F(Sweep, ARunThatAsksForOverwriteIsBegunAnewAlone) {
  settings_.anew = [](const PlannedRun& run) { return concat("run --point ", run.point); };
  const auto last_line = [&](const std::string& said) {
    return sweep(concat("echo '", said, "'; exit 3\n"), {planned("a")}).failed.at(0).last_line;
  };
  EXPECT_EQ(last_line("a/run.json: is damaged; give --overwrite or another --out"),
            "a/run.json: is damaged; `run --point 1` begins it anew");
  EXPECT_EQ(last_line("a: is done: give another --out, or --overwrite"),
            "a: is done: `run --point 1` begins it anew");
  EXPECT_EQ(last_line("a: give another --out"), "a: give another --out");
}

TEST_F(Sweep, ARunKilledByASignalHasFailedAndItsFolderSaysSo) {
  const SweepResult result = sweep(
      R"(echo '{"state": "running", "digest": "d1"}' > "$4/run.json"; kill -9 $$)", {planned("a")});
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_EQ(result.failed[0].outcome, "killed by signal 9 (out of memory?)");
  EXPECT_EQ(read_run(root_ / "a").state, "failed");
  EXPECT_EQ(read_run(root_ / "a").error, "killed by signal 9 (out of memory?)");
}

TEST_F(Sweep, ARunThatEndsWithoutAResultHasFailed) {
  const SweepResult result = sweep("exit 0", {planned("a")});
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_EQ(result.failed[0].outcome, "ended without finishing");
}

TEST_F(Sweep, PerformsRunsOnCpusInCopiesOfThisProcess) {
  if (!is_single_threaded()) return;  // ThreadSanitizer has a thread of its own
  settings_.perform = [](const std::vector<std::string>& arguments) {
    std::fprintf(stderr, "copy of %d\n", ::getppid());
    write_file(std::filesystem::path(arguments.at(3)) / "run.json",
               R"({"state": "done", "digest": "d1"})");
    if (arguments.at(3).ends_with("b")) std::abort();
    return 0;
  };
  std::vector<PlannedRun> runs{planned("a"), planned("b"), planned("gpu")};
  runs[0].on_cpus = runs[1].on_cpus = true;
  const SweepResult result = sweep(concat("echo a program\n", kDone), runs);
  EXPECT_EQ(result.done, 2u);
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_EQ(result.failed[0].outcome, concat("killed by signal ", SIGABRT));
  EXPECT_EQ(read_file(root_ / "a" / "log.txt"), concat("copy of ", ::getpid(), "\n"));
  EXPECT_EQ(read_file(root_ / "gpu" / "log.txt"), "a program\n");
}

TEST_F(Sweep, AProgramThatCannotStartIsAFailedRun) {
  settings_.program = {(root_ / "no-such-program").string()};
  SweepProgress progress(output_, false, 1, 0);
  const SweepResult result = run_sweep({planned("a")}, settings_, progress, FolderLock(root_));
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_NE(result.failed[0].last_line.find("No such file"), std::string::npos);
}

TEST_F(Sweep, SuccessAfterAFailureIsASuccess) {
  sweep("echo broken; exit 5", {planned("a")});
  EXPECT_EQ(sweep(kDone, {planned("a")}).done, 1u);
  EXPECT_EQ(read_run(root_ / "a").state, "done");
}

TEST_F(Sweep, NeverRunsMoreThanItsJobsAtOnce) {
  const std::string alone = concat("mkdir ", (root_ / "busy").string(), " || exit 9\n", kDone,
                                   "\nrmdir ", (root_ / "busy").string());
  std::vector<PlannedRun> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(planned(concat("run", i)));
  EXPECT_EQ(sweep(alone, runs).done, 20u);
}

TEST_F(Sweep, RunsAsManyAtOnceAsItsJobs) {
  settings_.jobs = 2;
  // Opening a pipe blocks until somebody opens its other end: neither run can end alone.
  const std::string meet =
      concat("cd ", root_.string(), "; mkfifo pipe 2>/dev/null\n",
             "case $4 in */a) echo > pipe;; *) read line < pipe;; esac\n", kDone);
  EXPECT_EQ(sweep(meet, {planned("a"), planned("b")}).done, 2u);
}

TEST_F(Sweep, LeavesNoZombies) {
  sweep("exit 1", {planned("a"), planned("b")});
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Sweep, InterruptIsPassedOnAndNothingIsStartedAfterIt) {
  const std::string script =
      "trap 'echo \"{\\\"state\\\": \\\"interrupted\\\"}\" > \"$4/run.json\"; exit 130' INT\n"
      "kill -TERM $PPID\n"
      "while kill -0 $PPID; do :; done\n";
  const SweepResult result = sweep(script, {planned("a"), planned("b")});
  EXPECT_TRUE(result.interrupted);
  EXPECT_TRUE(result.failed.empty());
  EXPECT_EQ(read_run(root_ / "a").state, "interrupted");
  EXPECT_FALSE(std::filesystem::exists(root_ / "b"));
}

TEST_F(Sweep, ResumeRepeatsNothingThatIsDone) {
  sweep(concat("case $4 in */b) exit 1;; esac\n", kDone), {planned("a"), planned("b")});
  settings_.resume = true;
  const std::vector<PlannedRun> left = runs_to_do({planned("a"), planned("b")}, settings_);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].title, "b");
}

TEST_F(Sweep, FinishedRunsAreRefusedWithoutResume) {
  sweep(kDone, {planned("a")});
  const std::string text = error_text([&] { runs_to_do({planned("a"), planned("b")}, settings_); });
  EXPECT_NE(text.find("the folder holds 1 finished run of this sweep; give --resume to keep it and "
                      "run the other 1, "),
            std::string::npos)
      << text;
  settings_.overwrite = true;
  EXPECT_EQ(runs_to_do({planned("a"), planned("b")}, settings_).size(), 2u);
}

TEST_F(Sweep, RunsOfOtherOptionsAreNeverContinued) {
  sweep(kDone, {planned("a")});
  PlannedRun changed = planned("a");
  changed.digest = "d2";
  settings_.resume = true;
  const std::string text = error_text([&] { runs_to_do({changed}, settings_); });
  EXPECT_NE(text.find("1 folder holds a run of other options (a); give --overwrite"),
            std::string::npos)
      << text;
}

TEST_F(Sweep, AFolderBelongsToOneSweepAtATime) {
  const FolderLock lock(root_);
  const std::string text = error_text([&] { sweep(kDone, {planned("a")}); });
  EXPECT_NE(text.find(concat("is being worked in by pid ", ::getpid(), " on host ")),
            std::string::npos)
      << text;
}

TEST_F(Sweep, AFolderOfSomebodyElseIsAFailedRunAndStaysAsItIs) {
  put("a/thesis.tex", "of somebody else");
  const SweepResult result = sweep(kDone, {planned("a"), planned("b")});
  EXPECT_EQ(result.done, 1u);
  ASSERT_EQ(result.failed.size(), 1u);
  EXPECT_NE(result.failed[0].last_line.find("the folder has 'thesis.tex' in it"), std::string::npos)
      << result.failed[0].last_line;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_ / "a"), {}), 1);
}

TEST_F(Sweep, ASignalBeforeTheFirstRunStartsNone) {
  const std::atomic<bool> stop = true;
  settings_.stop = &stop;
  const SweepResult result = sweep(kDone, {planned("a")});
  EXPECT_TRUE(result.interrupted && result.failed.empty() && result.done == 0);
  EXPECT_FALSE(std::filesystem::exists(root_ / "a"));
}

TEST_F(Sweep, ARunKilledByTheInterruptionHasNotFailed) {
  // Each tells us to stop, as Ctrl-C does, then dies of what we send, which is SIGINT.
  for (const char* const state :
       {"", R"(echo '{"state": "running", "digest": "d1"}' > "$4/run.json";)"}) {
    const SweepResult result =
        sweep(concat(std::string_view(state), " kill -INT $PPID; exec sleep 600\n"),
              {planned("a"), planned("b")});
    EXPECT_TRUE(result.interrupted && result.failed.empty() && result.done == 0);
    const RunRecord record = read_run(root_ / "a");
    EXPECT_EQ(record.state, *state == 0 ? "missing" : "interrupted");
    EXPECT_EQ(record.error, "");
  }
}

TEST_F(Sweep, PrintsALinePerRunWithTheMetric) {
  put("epochs.csv", accuracies({"0.5", "0.93"}));
  sweep(concat("cp ", (root_ / "epochs.csv").string(), " \"$4\"\n", kDone), {planned("PD4-2")});
  const std::string text = printed();
  EXPECT_EQ(text.find("[1/1] PD4-2: test_accuracy 93.00 % ("), 0u) << text;
}

}  // namespace
}  // namespace pipewright
