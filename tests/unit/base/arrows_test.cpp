// SPDX-License-Identifier: Apache-2.0
// Which way the rooms of the house may look, read from the #includes of every source file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/system/file.h"
#include "tests/unit/base/rooms.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;
using Rooms = std::set<std::string>;

/// A room is a folder, with the folders in it that are no rooms of their own. It may look into
/// itself and into these.
const std::map<std::string, std::string> kMayLookInto{
    {"core/base", ""},
    {"core/system", "core/base"},
    {"core/config", "core/base core/system"},
    {"core/schedule", "core/base core/system"},
    {"core/cost", "core/base core/system core/config core/schedule"},
    {"core/simulation", "core/base core/config core/schedule core/cost"},
    {"core/synthesis", "core/base core/config core/schedule core/cost core/simulation"},
    {"core/drawing", "core/base core/system core/config core/schedule core/cost core/simulation"},
    {"core/traces", "core/base core/config core/schedule core/simulation core/drawing"},
    {"core/planning", "core/base core/config core/drawing"},
    {"core/records", "core/base core/system core/config core/schedule"},
    {"core/statistics", "core/base"},
    {"core/tables", "core/base core/system core/config core/schedule core/records core/statistics"},
    {"core/page",
     "core/base core/config core/schedule core/simulation core/drawing core/traces core/records "
     "core/tables"},
    {"core/exports",
     "core/base core/system core/config core/schedule core/cost core/simulation core/records "
     "core/tables"},
    {"core/fetch", "core/base core/system"},
    {"core/stability", "core/base core/config core/schedule"},
    {"core/tensors", ""},
    {"core/tensor_files", "core/base core/system core/config"},
    {"core/nn", "core/base core/config core/schedule core/tensors"},
    {"core/optim", "core/base core/config core/schedule core/tensors core/nn"},
    {"core/stage", "core/base core/schedule core/tensors core/nn core/optim"},
    {"core/translation", "core/base core/tensors core/tensor_files core/nn"},
    {"core/codecs/loops", "core/base core/system core/tensors"},
    {"core/codecs", "core/base core/system core/config core/tensors core/nn core/stage"},
    {"core/codecs/kinds", "core/base core/tensors core/codecs/loops core/codecs"},
    {"core/runtime",
     "core/base core/system core/schedule core/simulation core/tensors core/nn core/stage "
     "core/codecs"},
    {"core/processes", "core/base core/system core/tensors core/nn core/runtime"},
    {"core/probes",
     "core/base core/config core/schedule core/tensors core/nn core/stage core/runtime "
     "core/stability"},
    {"core/experiment",
     "core/base core/system core/config core/schedule core/cost core/records core/tables "
     "core/stability core/tensors core/tensor_files core/nn core/optim core/stage core/translation "
     "core/codecs core/runtime core/probes"},
    {"core/measuring",
     "core/base core/system core/config core/schedule core/cost core/simulation core/records "
     "core/tensors core/nn core/optim core/stage core/codecs core/runtime core/experiment"},
    {"core/training",
     "core/base core/system core/config core/schedule core/drawing core/traces core/records "
     "core/exports core/stability core/tensors core/tensor_files core/nn core/stage "
     "core/translation core/runtime core/processes core/probes core/experiment core/measuring"},
    {"core/sweep",
     "core/base core/system core/config core/cost core/planning core/records core/tables "
     "core/stability core/experiment core/measuring core/training"},
    {"core/comparison",
     "core/base core/system core/schedule core/drawing core/records core/tensor_files"},
    {"tools",
     "core/base core/system core/config core/schedule core/cost core/simulation core/synthesis "
     "core/drawing core/traces core/planning core/records core/tables core/page core/exports "
     "core/fetch core/stability core/nn core/optim core/codecs core/runtime core/processes "
     "core/probes core/experiment core/measuring core/training core/sweep core/comparison"},
    {"schemes", "core/base core/system core/config core/schedule"},
    {"models", "core/base core/config core/tensors core/tensor_files core/nn"},
    {"datasets",
     "core/base core/system core/config core/fetch core/tensors core/tensor_files core/nn"},
};

const Rooms kWithoutLibTorch{
    "core/base",       "core/system",     "core/config",  "core/schedule", "core/cost",
    "core/simulation", "core/synthesis",  "core/drawing", "core/traces",   "core/planning",
    "core/records",    "core/tables",     "core/page",    "core/exports",  "core/fetch",
    "core/stability",  "core/statistics", "schemes"};

/// Headers that may include more of LibTorch than the tensor: the precompiled header, and the
/// template over tensors that only the optimizers' .cpp files read.
const std::set<std::string> kHeavyOnPurpose{"core/tensors/torch.h", "core/optim/elementwise.h"};

struct Include {
  std::string from;  ///< path from the root
  std::string what;
  bool quoted = false;
};

/// The innermost room that a path is in: "core/stage" of "core/nn/layers/linear.cpp"; "" of
/// none.
std::string room_of(const std::string& path) {
  for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1))
    if (kMayLookInto.contains(path.substr(0, end))) return path.substr(0, end);
  return "";
}

bool may_look(const std::string& from, const std::string& to) {
  const std::vector<std::string> rooms = split(kMayLookInto.at(from), ' ');
  return from == to || std::ranges::count(rooms, to) > 0;
}

bool is_header(const std::string& path) {
  return path.ends_with(".h") || path.ends_with(".inc");
}

bool of_libtorch(const std::string& what) {
  return std::regex_search(what, std::regex("^(torch|ATen|c10|caffe2)/"));
}

/// Costs seconds to each file that reads it: of LibTorch, not the tensor, not a small c10 header.
bool heavy(const std::string& what) {
  if (what == "core/tensors/torch.h") return true;
  return of_libtorch(what) && what != "ATen/core/Tensor.h" && what != "torch/version.h" &&
         !what.starts_with("c10/");
}

/// Of the product, from the root.
std::vector<fs::path> sources() {
  const fs::path root = source_dir();
  std::vector<fs::path> all;
  for (const char* folder : {"core", "schemes", "models", "datasets", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp" || extension == ".cu")
        all.push_back(entry.path().lexically_relative(root));
    }
  return all;
}

std::vector<Include> read_includes() {
  const std::regex include("^[ \\t]*#[ \\t]*include[ \\t]*([\"<])([^\">]+)[\">]");
  std::vector<Include> all;
  for (const fs::path& from : sources())
    for (const std::string& line : split(read_file(source_dir() / from), '\n'))
      if (std::smatch match; std::regex_search(line, match, include))
        all.push_back({from.generic_string(), match[2], match[1] == "\""});
  return all;
}

const std::vector<Include>& includes() {
  static const std::vector<Include> all = read_includes();
  return all;
}

/// One line per include that `forbidden` says is.
template <class Forbidden>
std::string violations(const Forbidden& forbidden) {
  std::string list;
  for (const Include& include : includes())
    if (forbidden(include)) list += concat("\n  ", include.from, " includes ", include.what);
  return list;
}

TEST(Architecture, TheSourcesAreFound) {
  Rooms seen;
  for (const Include& include : includes()) seen.insert(room_of(include.from));
  for (const auto& [room, unused] : kMayLookInto) EXPECT_TRUE(seen.contains(room)) << room;
}

TEST(Architecture, EveryFolderIsARoomOfThePlan) {
  EXPECT_EQ(violations([](const Include& include) {
              return !kMayLookInto.contains(room_of(include.from));
            }),
            "");
}

TEST(Architecture, OurIncludesAreWrittenFromTheRoot) {
  EXPECT_EQ(violations([](const Include& include) {
              return include.quoted && !fs::exists(source_dir() / include.what);
            }),
            "");
}

TEST(Architecture, EveryArrowOfThePlanIsTaken) {
  std::set<std::pair<std::string, std::string>> taken;
  for (const Include& include : includes())
    taken.emplace(room_of(include.from), room_of(include.what));
  std::string idle;
  for (const auto& [from, rooms] : kMayLookInto)
    for (const std::string& to : split(rooms, ' '))
      if (!to.empty() && !taken.contains({from, to})) idle += concat("\n  ", from, " to ", to);
  EXPECT_EQ(idle, "");
}

TEST(Architecture, RoomsLookOnlyAlongTheArrows) {
  EXPECT_EQ(violations([](const Include& include) {
              const std::string from = room_of(include.from);
              return include.quoted && !from.empty() && !may_look(from, room_of(include.what));
            }),
            "");
}

TEST(Architecture, NoPluginFolderSeesAnother) {
  const Rooms plugins{"schemes", "models", "datasets"};
  EXPECT_EQ(violations([&](const Include& include) {
              const std::string to = room_of(include.what);
              return include.quoted && plugins.contains(to) && to != room_of(include.from);
            }),
            "");
}

TEST(Architecture, WhatDecidesWhatHappensWhenKnowsNoTensor) {
  EXPECT_EQ(violations([](const Include& include) {
              return of_libtorch(include.what) && kWithoutLibTorch.contains(room_of(include.from));
            }),
            "");
}

TEST(Architecture, HeadersOfCoreIncludeOnlyTheTensorOfLibTorch) {
  EXPECT_EQ(violations([](const Include& include) {
              return include.from.starts_with("core/") && is_header(include.from) &&
                     !kHeavyOnPurpose.contains(include.from) && heavy(include.what);
            }),
            "");
}

/// Of a room that stands in another one the other's page tells.
TEST(Architecture, EveryRoomHasAPage) {
  for (const auto& [room, unused] : kMayLookInto) {
    if (room_of(room).empty()) {
      EXPECT_TRUE(fs::is_regular_file(source_dir() / room / "README.md")) << room;
    }
  }
}

/// A unit has one idea, so a room whose idea has many parts has many units.
TEST(Architecture, NoFolderHasMoreThanTwentyFiveUnitsAndNoneMoreThanAnEighthOfTheLines) {
  std::map<std::string, Rooms> units;
  std::map<std::string, std::size_t> lines;
  std::size_t all = 0;
  for (const fs::path& file : sources()) {
    const std::string folder = file.parent_path().generic_string();
    units[folder].insert(file.stem());
    const std::string text = read_file(source_dir() / file);
    const auto count = static_cast<std::size_t>(std::ranges::count(text, '\n'));
    lines[folder] += count;
    all += count;
  }
  for (const auto& [folder, names] : units) {
    EXPECT_LE(names.size(), 25U) << folder;
    EXPECT_LE(8 * lines[folder], all) << folder;
  }
}

/// The types that the headers define, with their namespace: "pipewright::Stage".
std::map<std::string, std::vector<std::string>> types_of_headers() {
  const std::regex type(
      "^(?:struct|class|enum class) (?:PIPEWRIGHT_\\w+ )?(\\w+)(?: final)?(?: ?:[^;]*)?(?: "
      "\\{.*)?$");
  std::map<std::string, std::vector<std::string>> headers;
  for (const fs::path& file : sources()) {
    if (!is_header(file.generic_string())) continue;
    std::string space;
    for (const std::string& line : split(read_file(source_dir() / file), '\n')) {
      if (line.starts_with("namespace ")) space = split(line, ' ')[1];
      if (std::smatch match; std::regex_match(line, match, type))
        headers[concat(space, "::", match[1].str())].push_back(file.generic_string());
    }
  }
  return headers;
}

/// Two types of one name are one type to the linker: code for the one then runs on the other.
TEST(Architecture, NoTwoHeadersDefineTypesOfOneName) {
  const auto types = types_of_headers();
  EXPECT_GT(types.size(), 300U);
  EXPECT_TRUE(types.contains("pipewright::Stage"));
  for (const auto& [name, headers] : types)
    EXPECT_EQ(headers.size(), 1U) << name << " in " << join(headers, ", ");
}

TEST(Architecture, TheExceptionsAreStillNeeded) {
  for (const std::string& header : kHeavyOnPurpose)
    EXPECT_TRUE(std::ranges::any_of(includes(), [&](const Include& include) {
      return include.from == header && heavy(include.what);
    })) << header;
}

}  // namespace

const std::map<std::string, std::string>& rooms_and_views() {
  return kMayLookInto;
}

const Rooms& rooms_without_libtorch() {
  return kWithoutLibTorch;
}

}  // namespace pipewright
