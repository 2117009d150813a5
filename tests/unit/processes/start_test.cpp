// SPDX-License-Identifier: Apache-2.0
// The start of a run of several processes, as its launcher sees it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "core/processes/start_watch.h"
#include "core/processes/team_patience.h"
#include "core/system/child_process.h"
#include "tests/unit/system/environment.h"

namespace pipewright::test {
namespace {

using namespace std::chrono_literals;

constexpr int kKilled = 128 + 9;  // mpirun's code after SIGKILL

/// A launcher's watch over three processes with the numbers 100, 101 and 102, in virtual time.
class WatchOfThree {
 public:
  /// Looks each 100 ms for so long; `states`: a letter per rank, a blank where there is no process.
  void look(std::string_view states, std::chrono::milliseconds duration = 100ms) {
    for (auto passed = 0ms; passed < duration; passed += 100ms) {
      std::vector<StartedProcess> now;
      for (int rank = 0; rank < 3; ++rank)
        if (const char state = states[static_cast<std::size_t>(rank)]; state != ' ')
          now.push_back({rank, 100 + rank, state});
      watch.look(now, time_ += 100ms);
    }
  }
  /// The launcher itself is stopped for so long.
  void sleep(std::chrono::milliseconds duration) { time_ += duration; }
  std::string error(int code) const { return watch.error(code).what(); }

  StartWatch watch{3, "here"};

 private:
  StartWatch::TimePoint time_{};
};

TEST(StartWatch, NamesTheFirstProcessThatDies) {
  for (const char* dead : {"SZS", "S S", "SXS"}) {
    WatchOfThree three;
    three.look("SSS");
    EXPECT_FALSE(three.watch.lost());
    three.look(dead);
    EXPECT_TRUE(three.watch.lost());
    three.look("   ");  // mpirun has ended the others
    EXPECT_EQ(three.error(kKilled),
              "worker 1: its process 101 on here was killed while MPI connected the workers");
    EXPECT_EQ(three.error(127),
              "worker 1: its process 101 on here ended with code 127 while MPI connected the "
              "workers");
    EXPECT_EQ(three.watch.stopped(), 0);
  }
}

TEST(StartWatch, NamesNobodyWhereAnotherMayHaveDiedBefore) {
  for (const auto& [before, after] : {std::pair("SSS", "ZZS"), std::pair("SS ", "ZS ")}) {
    WatchOfThree three;
    three.look(before);
    three.look(after);
    EXPECT_TRUE(three.watch.lost());
    EXPECT_EQ(three.error(kKilled),
              "a process of the run was killed while MPI connected the workers");
  }
}

TEST(StartWatch, KnowsWhoDiedBeforeItWasSeenIfAllOthersWere) {
  WatchOfThree three;
  three.look("   ");
  EXPECT_EQ(three.error(kKilled),
            "a process of the run was killed while MPI connected the workers");
  three.look("S S");
  EXPECT_EQ(three.error(127),
            "worker 1: its process ended with code 127 while MPI connected the workers");
}

TEST(StartWatch, NamesAProcessThatIsStoppedForLongerThanATeamWouldTake) {
  WatchOfThree three;
  three.look("SSS");
  three.look("SST", 5900ms);
  EXPECT_EQ(three.watch.stopped(), 0);
  three.look("SST");
  EXPECT_EQ(three.watch.stopped(), 102);
  EXPECT_EQ(three.error(kKilled),
            "worker 2: its process 102 on here was stopped for 6 s while MPI connected the "
            "workers");
  EXPECT_GT(StartPatience().stopped, TeamPatience().silence);
}

TEST(StartWatch, ForgivesAShortStopAndItsOwn) {
  WatchOfThree three;
  for (int i = 0; i < 3; ++i) {
    three.look("TSS", 4000ms);
    three.look("SSS");
  }
  three.look("TTT");
  three.sleep(1h);
  three.look("TTT");
  three.look("tSS", 1h);  // in a debugger
  EXPECT_FALSE(three.watch.lost());
}

TEST(StartWatch, LimitsTheTimeInWhichMpiConnectsThem) {
  WatchOfThree three;
  three.look("SSS", 1h);  // nobody has begun MPI, as far as can be heard
  three.watch.hear({StartWord::Step::Begun, 0});
  three.watch.hear({StartWord::Step::Begun, 2});
  three.look("SSS", 59s);
  EXPECT_FALSE(three.watch.late());
  three.look("SSS", 1s);
  EXPECT_TRUE(three.watch.late());
  EXPECT_EQ(three.error(0),
            "MPI has not connected the processes of 3 workers within 60 s: that of worker 1 has "
            "not begun");
  three.watch.hear({StartWord::Step::Begun, 1});
  EXPECT_EQ(three.error(0), "MPI has not connected the processes of 3 workers within 60 s");
}

TEST(StartWatch, IsOverWhereTheTeamSpeaks) {
  WatchOfThree three;
  three.watch.hear({StartWord::Step::Begun, 1});
  three.look("SSS");
  three.watch.hear({StartWord::Step::Speaks, 1});
  three.look("SZT", 1h);
  EXPECT_TRUE(three.watch.over());
  EXPECT_FALSE(three.watch.lost() || three.watch.late());
}

TEST(StartWatch, LooksAgainWhereTheRunEnds) {
  WatchOfThree three;
  three.look("SSS");
  three.watch.hear({StartWord::Step::Speaks, 0});
  three.watch.hear({StartWord::Step::Ends, 0});
  three.look("SSS", 1h);
  EXPECT_FALSE(three.watch.late());
  three.look("SZS");
  EXPECT_FALSE(three.watch.lost()) << "it may have ended regularly";
  EXPECT_EQ(three.error(kKilled),
            "worker 1: its process 101 on here was killed when the run had been trained");
  EXPECT_EQ(three.watch.stopped(), 0);
  three.look("TZS", 6000ms);
  EXPECT_EQ(three.watch.stopped(), 100);
  EXPECT_EQ(three.error(kKilled),
            "worker 0: its process 100 on here was stopped for 6 s when the run had been trained");
}

TEST(StartWatch, KnowsWhetherAProcessHasReportedTheError) {
  WatchOfThree three;
  EXPECT_FALSE(three.watch.said());
  three.watch.hear({StartWord::Step::Said, 2});
  EXPECT_TRUE(three.watch.said());
}

TEST(StartedBy, FindsOnlyProcessesWithARank) {
  const ChildProcess ranked({"sleep", "1000"}, {.environment = {{"OMPI_COMM_WORLD_RANK", "7"}}});
  const ChildProcess other({"sleep", "1000"});
  std::vector<StartedProcess> found;
  while (found.empty()) found = started_by(::getpid());  // until it has become `sleep`
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 7);
  EXPECT_EQ(found[0].process, ranked.pid());
  ranked.signal(SIGSTOP);
  while (found[0].state != 'T') found = started_by(::getpid());
}

TEST(StartWords, ReachTheLauncherInOrder) {
  const StartEar ear;
  EXPECT_FALSE(ear.hear());
  const EnvironmentSetting launcher(ear.variable().first.c_str(), ear.variable().second.c_str());
  const StartWord begun{StartWord::Step::Begun, 3}, speaks{StartWord::Step::Speaks, 12};
  EXPECT_TRUE(say_at_start(begun));
  EXPECT_TRUE(say_at_start(speaks));
  EXPECT_EQ(ear.hear(), begun);
  EXPECT_EQ(ear.hear(), speaks);
  EXPECT_FALSE(ear.hear());
}

TEST(StartWords, AreSaidToNobodyWithoutALauncher) {
  EXPECT_FALSE(say_at_start({}));
  std::pair<std::string, std::string> gone;
  {
    const StartEar ear;
    gone = ear.variable();
  }
  const EnvironmentSetting launcher(gone.first.c_str(), gone.second.c_str());
  EXPECT_FALSE(say_at_start({}));
}

}  // namespace
}  // namespace pipewright::test
