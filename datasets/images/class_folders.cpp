// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/class_folders.h"

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "datasets/archives/circle.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_unlisted(const fs::path& folder, const std::error_code& problem) {
  throw Error(ErrorKind::Data, "cannot list the folder: " + problem.message(), folder.string());
}

/// The images in and below the folder, relative to it; those of a folder come before those of its
/// subfolders.
std::vector<fs::path> sorted_images(const fs::path& folder) {
  using Walk = fs::recursive_directory_iterator;
  std::vector<fs::path> files;
  std::error_code problem;
  Walk walk(folder, fs::directory_options::follow_directory_symlink, problem);
  for (; !problem && walk != Walk(); walk.increment(problem)) {
    refuse_circle(walk.depth(), walk->path());
    std::error_code gone;  // a dangling link
    if (is_image_name(walk->path().filename().string()) && walk->is_regular_file(gone))
      files.push_back(walk->path().lexically_relative(folder));
  }
  if (problem) throw_unlisted(folder, problem);
  std::ranges::sort(files, {}, [](const fs::path& file) {
    return std::pair(file.parent_path().generic_string(), file.filename().string());
  });
  return files;
}

}  // namespace

bool is_image_name(std::string_view name) {
  if (name.starts_with('.')) return false;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string end(name.substr(dot));
  std::ranges::transform(end, end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end == ".jpg" || end == ".jpeg" || end == ".png";
}

std::vector<std::string> folder_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(folder, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::error_code gone;
    const std::string name = entries->path().filename().string();
    if (!name.starts_with('.') && entries->is_directory(gone)) names.push_back(name);
  }
  if (problem) throw_unlisted(folder, problem);
  std::ranges::sort(names);
  return names;
}

EncodedImages images_by_class(const fs::path& folder, std::span<const std::string> classes) {
  EncodedImages images;
  images.root = folder;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const std::vector<fs::path> files = sorted_images(folder / classes[c]);
    if (files.empty())
      throw Error(ErrorKind::Data,
                  concat("class ", classes[c], " has no images (.jpg, .jpeg or .png)"),
                  (folder / classes[c]).string());
    for (const fs::path& file : files) {
      images.names.push_back((classes[c] / file).generic_string());
      images.labels.push_back(static_cast<std::int64_t>(c));
    }
  }
  return images;
}

}  // namespace pipewright
