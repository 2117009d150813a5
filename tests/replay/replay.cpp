// SPDX-License-Identifier: Apache-2.0
// Makes, proves and simulates the schedule of every scheme in a grid of shapes, see README.md.
//   replay                       prints a line with digests for each case
//   replay BASELINE [CHANGES]    compares these lines with those of files; exit code 1: they differ
//   replay --write FILE ORIGIN   writes them; the first line of the file says what they are of
//   replay --show TEXT           prints what is digested of the cases whose names have this text
#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/version.h"
#include "core/base/wording.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tests/replay/grid.h"
#include "tests/replay/line.h"
#include "tests/replay/outcome.h"

namespace pipewright::replay {
namespace {

constexpr std::size_t kShown = 10;  // differences printed of a scheme

std::string replayed() {
  std::string lines;
  for (const Case& each : every_case()) lines += line_of(each, outcome_of(each)) + "\n";
  return lines;
}

/// Prints the first differences of each scheme, and how many more it has.
void print_differences(const std::vector<std::string>& differences) {
  std::map<std::string, std::vector<std::string>> of_schemes;
  for (const std::string& each : differences)
    of_schemes[each.substr(0, each.find_first_of(", "))].push_back(each);
  for (const auto& [scheme, own] : of_schemes) {
    for (std::size_t i = 0; i < std::min(own.size(), kShown); ++i) print("%s\n", own[i].c_str());
    if (own.size() > kShown) print("… and %zu more of %s\n", own.size() - kShown, scheme.c_str());
  }
}

int compare_with(const std::vector<std::string>& files) {
  std::string expected;
  for (const std::string& file : files) expected += read_file(file) + "\n";
  const Comparison found = compare(expected, replayed());
  print_differences(found.differences);
  const std::size_t different = found.differences.size();
  print("%s as in %s, %zu different, %zu new\n", counted(found.same, "line").c_str(),
        join(files, " and ").c_str(), different, found.fresh);
  return different == 0 ? 0 : 1;
}

int write_to(const std::string& file, const std::string& origin) {
  write_file(file, concat("# The replay of Pipewright " PIPEWRIGHT_VERSION
                          " with core and schemes as they are in ",
                          origin, ", see README.md\n", replayed()));
  return 0;
}

int show(const std::string& text) {
  for (const Case& each : every_case()) {
    if (each.name.find(text) == std::string::npos) continue;
    const Outcome outcome = outcome_of(each);
    print("%s\n", line_of(each, outcome).c_str());
    for (std::size_t i = 0; i < kDigested.size(); ++i)
      print("--- %s\n%s", kDigested[i], outcome.texts[i].c_str());
  }
  return 0;
}

int command(const std::vector<std::string>& words) {
  if (words.empty()) return print("%s", replayed().c_str()), 0;
  if (words.size() <= 2 && !words[0].starts_with("--")) return compare_with(words);
  if (words.size() == 3 && words[0] == "--write") return write_to(words[1], words[2]);
  if (words.size() == 2 && words[0] == "--show") return show(words[1]);
  throw Error(ErrorKind::Experiment,
              "expected BASELINE [CHANGES], --write FILE ORIGIN, --show TEXT or nothing");
}

}  // namespace
}  // namespace pipewright::replay

int main(int count, char** words) {
  try {
    return pipewright::replay::command({words + 1, words + count});
  } catch (const std::exception& error) {
    pipewright::print_error("replay: %s\n", error.what());
    return 2;
  }
}
