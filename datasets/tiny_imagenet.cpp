// SPDX-License-Identifier: Apache-2.0
/// Tiny-ImageNet in its authors' layout, unpacked or as one archive: 64 × 64 JPEG images in
/// train/WNID/images/ and in val/images/, the latter labelled by val/val_annotations.txt; wnids.txt
/// lists the classes. The files are kept in memory as JPEG and decoded batch by batch.
#include <algorithm>
#include <map>

#include "core/base/error_at.h"
#include "core/fetch/sources.h"
#include "datasets/archives/file_tree.h"
#include "datasets/archives/lines.h"
#include "datasets/images/class_folders.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 64;
constexpr std::uint64_t kLargestImage = 1 << 20, kLargestNameList = 1 << 22;
constexpr std::uint64_t kLargestSet = std::uint64_t{4} << 30;
constexpr std::string_view kClasses = "wnids.txt", kAnnotations = "val/val_annotations.txt";

std::uint64_t wanted(const std::string& name) {
  if (name == kClasses || name == kAnnotations) return kLargestNameList;
  const bool of_a_split = name.starts_with("train/") || name.starts_with("val/images/");
  return of_a_split && is_image_name(fs::path(name).filename().string()) ? kLargestImage : 0;
}

/// `root` itself if it is an archive or holds the files; otherwise the data set's folder or archive
/// in it.
fs::path place_in(const fs::path& root) {
  std::error_code ignored;
  if (fs::is_regular_file(root, ignored) || fs::exists(root / kClasses, ignored)) return root;
  for (const char* name :
       {"tiny-imagenet-200", "tiny-imagenet-200.zip", "tiny-imagenet-200.tar.gz"})
    if (fs::exists(root / name, ignored)) return root / name;
  return root;
}

/// Labels by class name. They are the ranks of the sorted names, as in torchvision's ImageFolder,
/// not the order of wnids.txt.
using Labels = std::map<std::string, std::int64_t>;

class TinyImagenet final : public EncodedImageDataset {
 public:
  explicit TinyImagenet(Options& options)
      : root_(options.path("root", "~/data/tiny-imagenet-200",
                           "Folder of wnids.txt, train/ and val/, or a .zip or .tar.gz of it.")) {
    look_ = {.shape = {3, kSide, kSide}, .classes = 200, .padding = 8};
    read_colour_options(options, {kImageNetMean, kImageNetDeviation}, look_);
  }

  bool sorted_by_class() const override { return true; }

  void open(const DatasetRequest&) override {
    place_ = place_in(root_);
    std::error_code ignored;
    FileTree files;  // if it stays empty, content() reports where to get the files
    if (fs::exists(place_, ignored)) files = read_tree(place_, wanted, kLargestSet);
    const Labels labels = read_labels(files);
    look_.classes = std::ssize(labels);
    train_ = training_images(files, labels);
    test_ = validation_images(files, labels);
  }

 private:
  [[noreturn]] void fail(std::string_view file, const std::string& what) const {
    throw data_error(place_ / file, what);
  }

  const std::string& content(const FileTree& files, std::string_view name) const {
    const auto found = files.find(std::string(name));
    if (found != files.end()) return found->second;
    fail(name,
         "no such file. It is part of Tiny-ImageNet (tiny-imagenet-200.zip, md5 "
         "90528d7ca1a48142e341f4ef8d21d0de), available from the page of Stanford's course CS231n. "
         "Set dataset.root to the folder that holds it" +
             fetch_advice("tiny_imagenet"));
  }

  Labels read_labels(const FileTree& files) const {
    Labels labels;
    for (const std::string& name : entries_of(content(files, kClasses))) labels.emplace(name, 0);
    if (labels.empty()) fail(kClasses, "names no class");
    std::int64_t next = 0;
    for (auto& [name, label] : labels) label = next++;
    return labels;
  }

  void add(EncodedImages& images, const std::string& name, std::int64_t label,
           std::string bytes) const {
    images.names.push_back(name);
    images.labels.push_back(label);
    images.contents.push_back(std::move(bytes));
  }

  /// The training images, sorted by class, then by name.
  EncodedImages training_images(FileTree& files, const Labels& labels) const {
    EncodedImages images;
    images.root = place_;
    std::vector<std::int64_t> counts(labels.size());
    for (auto at = files.lower_bound("train/"); at != files.end(); ++at) {
      const std::string& name = at->first;
      if (!name.starts_with("train/")) break;
      const std::string wnid = name.substr(6, name.find('/', 6) - 6);
      const auto label = labels.find(wnid);
      if (label == labels.end()) fail(name, concat("is of class ", wnid, ", not in ", kClasses));
      ++counts[static_cast<std::size_t>(label->second)];
      add(images, name, label->second, std::move(at->second));
    }
    for (const auto& [wnid, label] : labels)
      if (counts[static_cast<std::size_t>(label)] == 0)
        fail("train/" + wnid, concat("no images of this class, which ", kClasses, " names"));
    return images;
  }

  /// The test images in the order of val_annotations.txt, whose lines are "<file>\t<wnid>\t<box>".
  EncodedImages validation_images(FileTree& files, const Labels& labels) const {
    EncodedImages images;
    images.root = place_;
    std::int64_t record = 0;
    for (const std::string& line : entries_of(content(files, kAnnotations))) {
      const auto fault = [&](const std::string& what) {
        fail(kAnnotations, concat("record ", record, " (counted from 0): ", what));
      };
      const std::vector<std::string> fields = split(line, '\t');
      if (fields.size() < 2) fault(concat("'", line, "' is not '<file> <tab> <class> …'"));
      const auto label = labels.find(fields[1]);
      if (label == labels.end()) fault(concat("class ", fields[1], " is not in ", kClasses));
      const auto file = files.find("val/images/" + fields[0]);
      if (file == files.end()) fault(concat("there is no val/images/", fields[0]));
      if (file->second.empty()) fault(concat(fields[0], " is listed twice, or empty"));
      add(images, file->first, label->second, std::move(file->second));
      file->second.clear();
      ++record;
    }
    if (images.size() == 0) fail(kAnnotations, "lists no images");
    return images;
  }

  fs::path root_, place_;
};

}  // namespace

PIPEWRIGHT_DATASET(tiny_imagenet, TinyImagenet,
                   "Tiny-ImageNet: 64 × 64 colour images of 200 classes, 100,000 + 10,000.")

}  // namespace pipewright
