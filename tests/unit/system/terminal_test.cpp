// SPDX-License-Identifier: Apache-2.0
// What reaches a terminal, seen through a pseudo-terminal, and that there is one door to it.
#include "core/system/terminal.h"
#include "tests/unit/system/environment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: posix_openpt
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/system/file.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// A terminal of some columns whose screen is read as bytes.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(master_);
    ::unlockpt(master_);
    out_ = std::fopen(::ptsname(master_), "r+");
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(::fileno(out_), TIOCSWINSZ, &size);
  }
  ~Terminal() {
    std::fclose(out_);
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::FILE* file() const { return out_; }
  std::string read() {
    std::fflush(out_);
    std::array<char, 4096> text{};
    const ssize_t length = ::read(master_, text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length))};
  }

 private:
  int master_;
  std::FILE* out_;
};

TEST(PrintTo, MakesEverythingPrintable) {
  const Terminal screen(80);
  Terminal terminal(80);
  print_to(terminal.file(), "%s: %d\n", "\x1b]0;gone\a\x9b", 3);
  EXPECT_EQ(terminal.read(), "\\x1b]0;gone\\x07\\x9b: 3\r\n");
}

TEST(PrintTo, ShortensLinesThatNobodyCouldRead) {
  Terminal terminal(80);
  print_to(terminal.file(), "'%s'", std::string(1'000'000, 'x').c_str());
  const std::string seen = terminal.read();
  EXPECT_LT(seen.size(), 4096u);
  EXPECT_NE(seen.find("…(996002 characters left out)…"), std::string::npos);
}

TEST(PrintColored, LetsColoursThroughAndNothingElse) {
  testing::internal::CaptureStdout();
  print_colored("\033[31mred\033[0m \033[2J \033]0;x\a \033[1;32mg\033[");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "\033[31mred\033[0m \\x1b[2J \\x1b]0;x\\x07 \033[1;32mg\\x1b[");
}

TEST(StatusLine, IsCutToTheWidthOfTheTerminal) {
  const test::EnvironmentSetting term("TERM", "xterm"), color("NO_COLOR", "");
  Terminal terminal(20);
  StatusLine line(terminal.file());
  line.show("runs/a-name-that-is-longer-than-the-terminal ━━━━ 3/5");
  EXPECT_EQ(terminal.read(), "\r\033[Kruns/a-name-that-i…");
  line.show("a\x1b[2Jb\nc");
  EXPECT_EQ(terminal.read(), "\r\033[Ka\\x1b[2Jb\\nc");
  line.clear();
  EXPECT_EQ(terminal.read(), "\r\033[K");
}

TEST(TakesEscapes, OnlyATerminalThatIsAskedTo) {
  Terminal terminal(80);
  {
    const test::EnvironmentSetting term("TERM", "xterm-256color"), color("NO_COLOR", "");
    EXPECT_TRUE(takes_escapes(terminal.file()));
  }
  {
    const test::EnvironmentSetting term("TERM", "xterm-256color"), color("NO_COLOR", "1");
    EXPECT_FALSE(takes_escapes(terminal.file()));
  }
  for (const char* name : {"dumb", ""}) {
    const test::EnvironmentSetting term("TERM", name), color("NO_COLOR", "");
    EXPECT_FALSE(takes_escapes(terminal.file())) << name;
  }
  const test::EnvironmentSetting term("TERM", "xterm-256color"), color("NO_COLOR", "");
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(takes_escapes(file));
  std::fclose(file);
}

/// A line of the sources that would go past the door.
bool goes_past(const std::string& line) {
  constexpr std::array kParts{"print", "put", "perror", "std::c", "write"};
  if (std::ranges::none_of(kParts, [&](const char* part) { return line.find(part) != line.npos; }))
    return false;
  static const std::regex printing(
      "\\b(v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror)\\s*\\(|\\bstd::(cout|cerr|clog)\\b|"
      "\\bfwrite\\s*\\(.*\\bstd(out|err)\\b|\\bwrite\\s*\\(\\s*(STD|1,|2,)");
  return std::regex_search(line, printing);
}

TEST(TheDoor, IsRecognised) {
  for (const char* line :
       {"std::printf(\"x\");", "  fprintf(stderr, x);", "std::cout << x;", "puts(x);",
        "::write(STDERR_FILENO, x, 1);", "std::fwrite(x, 1, 1, stdout);"})
    EXPECT_TRUE(goes_past(line)) << line;
  for (const char* line :
       {"std::snprintf(x, 1, y);", "print_error(\"x\");", "std::vsnprintf(x);",
        "[[gnu::format(printf, 1, 2)]]", "stream.write(x, 1);", "::write(fd, x, 1);"})
    EXPECT_FALSE(goes_past(line)) << line;
}

TEST(TheDoor, IsTheOnlyWayToATerminal) {
  std::string past;
  for (const char* folder : {"core", "schemes", "models", "datasets", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) {
      const fs::path name = entry.path().lexically_relative(source_dir());
      const std::string extension = name.extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
      if (name == "core/system/terminal.cpp") continue;
      for (const std::string& line : split(read_file(entry.path()), '\n'))
        if (goes_past(line)) past += concat("\n  ", name.string(), ": ", line);
    }
  EXPECT_EQ(past, "");
}

}  // namespace
}  // namespace pipewright
