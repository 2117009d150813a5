// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/class_folders.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/wording.h"
#include "core/tensor_files/pattern.h"
#include "datasets/archives/circle.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// A folder that macOS adds to zip archives, of hidden files only.
constexpr std::string_view kMacFolder = "__MACOSX";

[[noreturn]] void throw_unlisted(const fs::path& folder, const std::error_code& problem) {
  throw data_error(folder, "cannot list the folder: " + problem.message());
}

std::string lower_ending(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string() : lower_case(name.substr(dot));
}

/// The images in and below the folder, relative to it; those of a folder come before those of its
/// subfolders. Counts the endings of other files that are not hidden.
std::vector<fs::path> sorted_images(const fs::path& folder,
                                    std::map<std::string, std::int64_t>& left_out) {
  using Walk = fs::recursive_directory_iterator;
  std::vector<fs::path> files;
  std::error_code problem;
  Walk walk(folder, fs::directory_options::follow_directory_symlink, problem);
  for (; !problem && walk != Walk(); walk.increment(problem)) {
    refuse_circle(walk.depth(), walk->path());
    std::error_code gone;  // a dangling link
    const std::string name = walk->path().filename().string();
    if (name.starts_with('.') || !walk->is_regular_file(gone)) continue;
    if (is_image_name(name))
      files.push_back(walk->path().lexically_relative(folder));
    else
      ++left_out[lower_ending(name)];
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
  const std::string end = lower_ending(name);
  return end == ".jpg" || end == ".jpeg" || end == ".png";
}

std::vector<std::string> folder_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(folder, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::error_code gone;
    const std::string name = entries->path().filename().string();
    if (!name.starts_with('.') && name != kMacFolder && entries->is_directory(gone))
      names.push_back(name);
  }
  if (problem) throw_unlisted(folder, problem);
  std::ranges::sort(names);
  return names;
}

EncodedImages images_by_class(const fs::path& folder, std::span<const std::string> classes) {
  EncodedImages images;
  images.root = folder;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const std::vector<fs::path> files = sorted_images(folder / classes[c], images.left_out);
    if (files.empty())
      throw data_error(folder / classes[c], "class ", classes[c],
                       " has no images (.jpg, .jpeg or .png)");
    for (const fs::path& file : files) {
      images.names.push_back((classes[c] / file).generic_string());
      images.labels.push_back(static_cast<std::int64_t>(c));
    }
  }
  return images;
}

std::vector<std::string> left_out_remarks(const EncodedImages& images) {
  std::vector<std::string> all;
  for (const auto& [end, count] : images.left_out)
    all.push_back(concat(images.root.string(), ": ", counted(count, "file"), " ",
                         end.empty() ? "without an ending" : "ending in " + end,
                         count == 1 ? " is" : " are",
                         " left out; images are .jpg, .jpeg and .png"));
  return all;
}

}  // namespace pipewright
