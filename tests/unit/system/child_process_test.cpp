// SPDX-License-Identifier: Apache-2.0
// Other programs, started without a shell.
#include "core/system/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <regex>
#include <thread>

#include "core/base/error.h"
#include "core/system/file.h"
#include "tests/unit/source_dir.h"

namespace pipewright::test {
namespace {

TEST(ChildProcess, GetsItsArgumentsAsTheyAre) {
  const std::string odd = "$(echo no) 'a' \"b\" ; * \n";
  EXPECT_EQ(output_of({"printf", "%s|", odd, ""}, 1000).text, odd + "||");
}

TEST(ChildProcess, KeepsOnlyTheBeginningOfALongOutputAndWaitsForItsEnd) {
  const ChildOutput output = output_of({"sh", "-c", "seq 100000; exit 3"}, 10);
  EXPECT_EQ(output.text, "1\n2\n3\n4\n5\n");
  EXPECT_EQ(output.end.code, 3);
}

TEST(ChildProcess, PrintsBothOfItsOutputsIntoOne) {
  EXPECT_EQ(output_of({"sh", "-c", "echo out; echo err >&2"}, 100).text, "out\nerr\n");
}

TEST(ChildProcess, ReadsNothingUnlessItIsGivenSomething) {
  EXPECT_EQ(output_of({"cat"}, 100).text, "");
  EXPECT_EQ(output_of({"grep", "-qx", "a line"}, 100, "one\na line\n").end.code, 0);
  EXPECT_EQ(output_of({"grep", "-qx", "a line"}, 100, "one\n").end.code, 1);
}

TEST(ChildProcess, DoesNotEndUsByLeavingItsInputUnread) {
  EXPECT_EQ(output_of({"true"}, 100, std::string(1 << 20, 'x')).end.code, 0);
}

TEST(ChildProcess, HasVariablesBesidesOurs) {
  ::setenv("PIPEWRIGHT_TEST_OURS", "ours", 1);
  ::setenv("PIPEWRIGHT_TEST_OLD", "old", 1);
  const std::string log = testing::TempDir() + "child_process_variables";
  ChildProcess child({"sh", "-c", "echo $PIPEWRIGHT_TEST_OURS $PIPEWRIGHT_TEST_OLD; exit 4"},
                     {.environment = {{"PIPEWRIGHT_TEST_OLD", "new"}}, .log = log});
  EXPECT_EQ(child.wait().code, 4);
  EXPECT_EQ(read_file(log), "ours new\n");
  EXPECT_STREQ(std::getenv("PIPEWRIGHT_TEST_OLD"), "old") << "ours stay as they are";
  ::unlink(log.c_str());
}

TEST(ChildProcess, CanBeACopyOfThisProcess) {
  const std::string log = testing::TempDir() + "child_process_copy";
  int here = 1;
  std::printf("once");  // buffered here, and printed by us only
  ChildProcess child = ChildProcess::forked(
      [&] {
        std::printf("%d %s %c", here, std::getenv("PIPEWRIGHT_TEST_NEW"),
                    std::getchar() == EOF ? 'e' : 'x');
        std::fprintf(stderr, " %d", ::getpgrp() == ::getpid());
        here = 2;
        return 5;
      },
      {.environment = {{"PIPEWRIGHT_TEST_NEW", "new"}}, .log = log, .own_group = true});
  const ChildEnd end = child.wait();
  EXPECT_EQ(end.code, 5);
  EXPECT_EQ(end.signal, 0);
  EXPECT_EQ(read_file(log), " 11 new e") << "standard error is not buffered, so it comes first";
  EXPECT_EQ(here, 1);
  EXPECT_EQ(std::getenv("PIPEWRIGHT_TEST_NEW"), nullptr);
  ::unlink(log.c_str());
}

TEST(ChildProcess, ThatIsACopyCanBeKilledAndIsRefusedWithoutItsLog) {
  ChildProcess killed = ChildProcess::forked([] {
    for (;;) ::pause();
    return 0;
  });
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.wait().signal, SIGKILL);
  EXPECT_THROW(ChildProcess::forked([] { return 0; }, {.log = "/nowhere/at/all"}), Error);
}

TEST(ChildProcess, CountsTheThreadsOfThisProcess) {
  std::atomic<bool> end = false;
  std::thread other([&] { end.wait(false); });
  EXPECT_FALSE(is_single_threaded());
  end = true;
  end.notify_one();
  other.join();
}

TEST(ChildProcess, IsNotBlockedBySignalsThatWeIgnore) {
  const auto before = std::signal(SIGTERM, SIG_IGN);
  ChildProcess child({"sleep", "1000"}, {.own_group = true});
  std::signal(SIGTERM, before);
  EXPECT_EQ(::getpgid(child.pid()), child.pid());
  EXPECT_FALSE(child.poll());
  child.signal(SIGTERM);
  const ChildEnd end = child.wait();
  EXPECT_EQ(end.code, -1);
  EXPECT_EQ(end.signal, SIGTERM);
  EXPECT_EQ(child.poll()->signal, SIGTERM) << "as often as one asks";
}

TEST(ChildProcess, IsKilledWithTheObject) {
  pid_t pid = 0;
  {
    ChildProcess child({"sleep", "1000"});
    ChildProcess moved = std::move(child);
    pid = moved.pid();
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(ChildProcess, SaysWhatCannotBeStarted) {
  try {
    ChildProcess({"no-such-program-anywhere"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_STREQ(error.what(), "cannot start no-such-program-anywhere: No such file or directory");
  }
  EXPECT_TRUE(program_on_path("no-such-program-anywhere").empty());
  EXPECT_TRUE(program_on_path("sh").is_absolute());
}

// The child of a child hears of the end of the process between, which is killed.
TEST(ChildProcess, GetsASignalAtOurEnd) {
  ASSERT_FALSE(program_on_path("setpriv").empty()) << "it is a part of util-linux";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t between = ::fork();
  if (between == 0) {
    const ChildProcess child({"sh", "-c",
                              "trap 'echo heard; exit' TERM; echo on; i=0\n"
                              "while [ $i -lt 1000 ]; do sleep 0.01; i=$((i + 1)); done"},
                             {.output = ends[1], .at_our_end = SIGTERM});
    ::close(ends[1]);
    ::pause();
  }
  ::close(ends[1]);
  std::string said;
  const auto read_some = [&] {
    char text[64];
    const ssize_t count = ::read(ends[0], text, sizeof text);
    said.append(text, count > 0 ? static_cast<std::size_t>(count) : 0);
    return count > 0;
  };
  ASSERT_TRUE(read_some());
  EXPECT_EQ(said, "on\n");
  ::kill(between, SIGKILL);
  ::waitpid(between, nullptr, 0);
  while (read_some()) {
  }
  EXPECT_EQ(said, "on\nheard\n");
  ::close(ends[0]);
}

TEST(ChildProcess, StartsWhileOtherThreadsHoldLocks) {
  // With fork, a child that allocates waits for ever for a lock that another thread held.
  std::atomic<bool> stop = false;
  std::thread allocating([&] {
    while (!stop) static_cast<void>(std::make_unique<std::string>(1000, 'x')->size());
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ChildProcess({"true"}).wait().code, 0);
  stop = true;
  allocating.join();
}

TEST(ChildProcess, IsTheOnlyWayOfStartingOne) {
  const std::regex other("\\b(popen|fork|vfork|system|execv?[lp]?[ep]?|posix_spawnp?)\\s*\\(");
  for (const char* room : {"core", "tools", "schemes", "models", "datasets"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / room)) {
      const std::filesystem::path& file = entry.path();
      if (file.extension() != ".cpp" || file.filename() == "child_process.cpp") continue;
      EXPECT_FALSE(std::regex_search(read_file(file), other)) << file;
    }
}

}  // namespace
}  // namespace pipewright::test
