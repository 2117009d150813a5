// SPDX-License-Identifier: Apache-2.0
// What libraries throw is one line with the exit code of whoever is to blame.
#include "core/system/foreign_error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

namespace pipewright {
namespace {

Error caught(const std::function<void()>& code, ErrorKind resource = ErrorKind::Data) {
  try {
    code();
  } catch (const std::exception& error) {
    return foreign_error(error, resource);
  }
  return Error(ErrorKind::Bug, "nothing was thrown");
}

bool has(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

TEST(ForeignError, MemoryThatRanOutIsAResource) {
  const auto throw_it = [] { throw std::bad_alloc(); };
  EXPECT_EQ(caught(throw_it).kind(), ErrorKind::Data);
  EXPECT_EQ(caught(throw_it, ErrorKind::Worker).kind(), ErrorKind::Worker);
  EXPECT_TRUE(has(caught(throw_it), "memory ran out")) << caught(throw_it).what();
}

TEST(ForeignError, SaysHowManyBytesLibTorchWasAskedFor) {
  const Error error = caught([] {
    throw std::runtime_error(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 36000000000000 bytes. Error code 12 (Cannot allocate memory)\n"
        "frame #0: c10::ThrowEnforceNotMet");
  });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(has(error, "memory ran out: 33527.61 GiB were asked for at once")) << error.what();
  EXPECT_FALSE(has(error, "frame"));
  EXPECT_FALSE(has(error, "\n"));
}

TEST(ForeignError, OneDnnsWordsForMemoryAreKnown) {
  const Error error = caught([] { throw std::runtime_error("could not create an engine"); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(has(error, "memory ran out (oneDNN could not create an engine)")) << error.what();
}

TEST(ForeignError, ASizeThatNoMachineHasIsNoBug) {
  volatile std::size_t all = static_cast<std::size_t>(-1);
  const Error error = caught([&] { std::vector<double>().reserve(all); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(has(error, "more was asked for than any machine has")) << error.what();
}

TEST(ForeignError, AThreadThatCannotBeStarted) {
  const auto throw_it = [] {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  EXPECT_EQ(caught(throw_it).kind(), ErrorKind::Data);
  EXPECT_TRUE(has(caught(throw_it), "a thread for this run cannot be started: "));
  EXPECT_TRUE(has(thread_error("worker 3", std::bad_alloc()),
                  "a thread for worker 3 cannot be started: memory ran out"));
}

TEST(ForeignError, AFileSystemsRefusalHasPathAndReason) {
  const Error error =
      caught([] { static_cast<void>(std::filesystem::status(std::string(300, 'n'))); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_EQ(error.where(), std::string(300, 'n'));
  EXPECT_EQ(error.message(), "cannot be used, status: File name too long");
  const Error folder = caught([] { std::filesystem::create_directories("/proc/no/such"); });
  EXPECT_EQ(folder.message(), "cannot create directories: No such file or directory");
}

TEST(ForeignError, OursStayAsTheyAreAndTheRestIsABug) {
  const Error ours = caught([] { throw Error(ErrorKind::Schedule, "wrong", "here"); });
  EXPECT_EQ(ours.kind(), ErrorKind::Schedule);
  EXPECT_STREQ(ours.what(), "here: wrong");
  const Error bug = caught([] { throw std::logic_error("odd\nstack"); });
  EXPECT_EQ(bug.kind(), ErrorKind::Bug);
  EXPECT_STREQ(bug.what(), "this is a bug in Pipewright: odd");
  EXPECT_FALSE(machine_error(std::logic_error("odd")).has_value());
}

}  // namespace
}  // namespace pipewright
