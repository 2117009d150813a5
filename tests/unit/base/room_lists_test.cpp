// SPDX-License-Identifier: Apache-2.0
// Documents and CMake files list the rooms that arrows_test.cpp has: none is forgotten, and none is
// listed that does not exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/system/file.h"
#include "tests/unit/base/rooms.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

using Names = std::set<std::string>;

/// Rooms without LibTorch whose tests are in lab_tests, because these ask data sets, too.
const Names kTestedWithLibTorch{"fetch"};

/// What lists call a room: "codecs/kinds" for core/codecs/kinds.
std::string short_name(const std::string& room) {
  return room.starts_with("core/") ? room.substr(5) : room;
}

/// Whether the room stands in another one, whose page tells of it.
bool is_within(const std::string& room) {
  return std::ranges::any_of(
      rooms_and_views(), [&](const auto& other) { return room.starts_with(other.first + "/"); });
}

/// Whether it is a room of core that stands in no other room.
bool of_core(const std::string& room) {
  return room.starts_with("core/") && !is_within(room);
}

bool tensorless(const std::string& room) {
  return rooms_without_libtorch().contains(room);
}

bool tested_without_libtorch(const std::string& room) {
  return tensorless(room) && !kTestedWithLibTorch.contains(short_name(room));
}

/// The names of the rooms for which `condition` holds.
template <class Condition>
Names rooms_that(const Condition& condition) {
  Names names;
  for (const auto& [room, unused] : rooms_and_views())
    if (condition(room)) names.insert(short_name(room));
  return names;
}

std::string document(const std::string& path) {
  return read_file(source_dir() / path);
}

/// What stands behind `begin` and before the next `end`; "" if there is no such place.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t found = text.find(begin);
  if (found == std::string::npos) return "";
  const std::size_t start = found + begin.size();
  return text.substr(start, text.find(end, start) - start);
}

/// Whatever the expression's first group matches.
Names matches(const std::string& text, const std::string& expression) {
  const std::regex regex(expression);
  Names names;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    names.insert((*match)[1]);
  return names;
}

/// One line for each room that a list forgets, and for each name in it that it should not have.
std::string faults(const std::string& list, const Names& listed, const Names& rooms) {
  std::string text;
  for (const std::string& room : rooms)
    if (!listed.contains(room)) text += concat("\n  ", list, " lacks ", room);
  for (const std::string& name : listed)
    if (!rooms.contains(name))
      text += concat("\n  ", list, " has ", name, ", which is no such room");
  return text;
}

/// The first block between lines of ``` that a page has behind `title`.
std::string picture(const std::string& page, const std::string& title) {
  return between(page.substr(std::min(page.find(title), page.size())), "```\n", "```\n");
}

/// The two halves of a picture: before the line that `heading` ends, and behind it.
std::pair<std::string, std::string> halves(const std::string& picture, const std::string& heading) {
  const std::size_t line = std::min(picture.find(heading), picture.size());
  return {picture.substr(0, line), picture.substr(std::min(line + heading.size(), picture.size()))};
}

/// The names in a picture of arrows. What stands in parentheses and headings is not read.
Names names_of_arrows(const std::string& picture) {
  const std::string without = std::regex_replace(picture, std::regex("\\([^)]*\\)|.*LibTorch"), "");
  return matches(without, "([a-z_]+(?:/[a-z_]+)*)");
}

/// The names in a picture of two columns, each a name or several, two blanks, and what they are.
Names names_of_columns(const std::string& picture) {
  Names names;
  for (const std::string& line : split(picture, '\n')) {
    const std::string cells =
        std::regex_replace(std::string(trimmed(line)), std::regex("  +"), "\t");
    const std::vector<std::string> parts = split(cells, '\t');
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
      for (const std::string& name : split(parts[i], ',')) names.insert(std::string(trimmed(name)));
  }
  return names;
}

TEST(RoomLists, TheTableOfCoreHasItsRooms) {
  EXPECT_EQ(faults("the table of core/README.md",
                   matches(document("core/README.md"), "\n\\| `([^`]+)` \\|"), rooms_that(of_core)),
            "");
}

TEST(RoomLists, ThePictureOfCoreHasAllRooms) {
  const std::string arrows = picture(document("core/README.md"), "# core");
  const auto [upper, lower] = halves(arrows, "\nwith LibTorch\n");
  EXPECT_EQ(faults("the picture of core/README.md", names_of_arrows(arrows),
                   rooms_that([](const std::string&) { return true; })),
            "");
  EXPECT_EQ(faults("its half without LibTorch", names_of_arrows(upper), rooms_that(tensorless)),
            "");
}

TEST(RoomLists, ThePictureOfTheArchitectureHasItsRooms) {
  const auto [upper, lower] =
      halves(picture(document("docs/architecture.md"), "## The rooms"), " with tensors\n");
  EXPECT_EQ(faults("the half of docs/architecture.md without tensors", names_of_columns(upper),
                   rooms_that(tensorless)),
            "");
  EXPECT_EQ(faults("the half of docs/architecture.md with tensors", names_of_columns(lower),
                   rooms_that([](const std::string& room) {
                     return !is_within(room) && !tensorless(room);
                   })),
            "");
}

TEST(RoomLists, OfCoreTestsAreTheRoomsWithoutLibTorch) {
  const Names tested = rooms_that(tested_without_libtorch);
  for (const char* page : {"CONTRIBUTING.md", "tests/README.md"}) {
    const std::string text = std::regex_replace(document(page), std::regex("\\s+"), " ");
    const std::string list = between(text, "the tests of `base`", ".");
    EXPECT_EQ(faults(concat(page, ", in what core_tests has,"),
                     matches("`base`" + list, "`([^`]+)`"), tested),
              "");
  }
}

TEST(RoomLists, OfTheExecutablesWithTestsHaveEveryRoom) {
  const std::string text = document("tests/CMakeLists.txt");
  EXPECT_EQ(faults("core_tests in tests/CMakeLists.txt",
                   matches(between(text, "GLOB_RECURSE core_tests", ")"), "unit/([^/]+)/"),
                   rooms_that(tested_without_libtorch)),
            "");
  EXPECT_EQ(faults("lab_rooms in tests/CMakeLists.txt",
                   matches(between(text, "set(lab_rooms", ")"), "([a-z_]+)"),
                   rooms_that([](const std::string& room) {
                     return !is_within(room) && !tested_without_libtorch(room) && room != "tools";
                   })),
            "");
}

TEST(RoomLists, APageNamesTheRoomsThatItsRoomMayInclude) {
  for (const auto& [room, views] : rooms_and_views()) {
    if (is_within(room) || room == "tools") continue;  // the page of tools names the others
    const std::string page = room + "/README.md", text = document(page);
    EXPECT_TRUE(text.starts_with(concat("# ", room, ":"))) << page;
    const Names named = matches(between(text, "## What it may touch", "\n##"), "`([^`]+)`");
    for (const std::string& other : split(views, ' '))
      EXPECT_TRUE(other.empty() || named.contains(other)) << page << " lacks " << other;
  }
}

/// Also those of folders within a room.
TEST(RoomLists, APageBeginsWithItsFolder) {
  namespace fs = std::filesystem;
  int pages = 0;
  for (const auto& each : fs::recursive_directory_iterator(source_dir() / "core")) {
    if (each.path().filename() != "README.md") continue;
    const std::string page = fs::relative(each.path(), source_dir()).generic_string();
    const std::string folder = fs::path(page).parent_path().generic_string();
    EXPECT_TRUE(document(page).starts_with(concat("# ", folder, ": "))) << page;
    ++pages;
  }
  EXPECT_GT(pages, 30);
}

}  // namespace
}  // namespace pipewright
