// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/archive_tree.h"

#include "datasets/archives/file_tree.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

constexpr std::uint64_t kLargest = 1 << 16, kMostInAll = 1 << 18;

std::uint64_t limit_of(const std::string& name) {
  if (name.starts_with("unwanted")) return 0;
  return name.starts_with("small") ? 8 : kLargest;
}

}  // namespace

std::map<std::string, std::string> tree_in(std::string_view archive) {
  static MemoryFile file;
  FileTree tree = read_tree(file.holding(archive), limit_of, kMostInAll);
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : tree) {
    require(content.size() <= limit_of(name), "a file is larger than its limit: " + name);
    bytes += content.size();
  }
  require(bytes <= kMostInAll, "the files are larger than the limit of all");
  return tree;
}

std::map<std::string, std::string> packable(std::map<std::string, std::string> tree) {
  std::erase_if(tree, [](const auto& file) {
    return file.first.empty() || file.first.find('\0') != std::string::npos;
  });
  return tree;
}

std::string text_of(const std::map<std::string, std::string>& tree) {
  std::string text;
  for (const auto& [name, content] : tree) text += concat(name, '=', content, '\n');
  return text;
}

}  // namespace pipewright::fuzz
