// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/file_tree.h"

#include <string_view>

#include "core/base/error_at.h"
#include "core/system/file.h"
#include "datasets/archives/archive.h"
#include "datasets/archives/circle.h"

namespace pipewright {
namespace {

/// Whether the file or a folder of it is hidden. macOS adds a hidden "._x" beside x to archives and
/// to disks with other file systems.
bool is_hidden(std::string_view name) {
  return name.starts_with('.') || name.find("/.") != std::string_view::npos;
}

class Collector {
 public:
  Collector(std::filesystem::path place, const Wanted& wanted, std::uint64_t limit_in_bytes)
      : place_(std::move(place)), wanted_(wanted), left_(limit_in_bytes) {}

  /// The greatest number of bytes that the file may have; 0 skips it.
  std::uint64_t limit(const std::string& name) const { return is_hidden(name) ? 0 : wanted_(name); }
  void add(const std::string& name, std::string content) {
    if (content.size() > left_)
      throw data_error(place_, "too many bytes in all, up to '", name, "'");
    left_ -= content.size();
    tree_.insert_or_assign(name, std::move(content));
  }
  FileTree take() { return std::move(tree_); }

 private:
  std::filesystem::path place_;
  const Wanted& wanted_;
  std::uint64_t left_;
  FileTree tree_;
};

void collect_folder(const std::filesystem::path& folder, Collector& files) {
  using Walk = std::filesystem::recursive_directory_iterator;
  std::error_code problem;
  Walk walk(folder, std::filesystem::directory_options::follow_directory_symlink, problem);
  for (; !problem && walk != Walk(); walk.increment(problem)) {
    refuse_circle(walk.depth(), walk->path());
    std::error_code gone;  // a dangling link
    if (!walk->is_regular_file(gone)) continue;
    const std::string name = walk->path().lexically_relative(folder).generic_string();
    if (const std::uint64_t limit = files.limit(name); limit > 0)
      files.add(name, read_file(walk->path(), limit));
  }
  if (problem) throw data_error(folder, "cannot list the folder: " + problem.message());
}

void collect_archive(const std::filesystem::path& archive, Collector& files) {
  ArchiveReader reader(archive);
  while (reader.next()) {
    const std::string name = reader.name().substr(reader.name().find('/') + 1);
    if (const std::uint64_t limit = files.limit(name); limit > 0)
      files.add(name, reader.content(limit));
  }
}

}  // namespace

FileTree read_tree(const std::filesystem::path& place, const Wanted& wanted,
                   std::uint64_t limit_in_bytes) {
  Collector files(place, wanted, limit_in_bytes);
  std::error_code ignored;
  if (std::filesystem::is_directory(place, ignored))
    collect_folder(place, files);
  else
    collect_archive(place, files);
  return files.take();
}

}  // namespace pipewright
