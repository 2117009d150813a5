// SPDX-License-Identifier: Apache-2.0
/// Food-101 in its authors' layout: images/CLASS/ID.jpg, listed by meta/{classes,train,test}.txt.
/// The images, 5 GB, are read when a batch needs them.
#include <algorithm>
#include <map>

#include "core/base/error_at.h"
#include "core/fetch/sources.h"
#include "core/system/file.h"
#include "datasets/archives/lines.h"
#include "datasets/images/encoded_images.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kLargestList = std::uint64_t{8} << 20;

class Food101 final : public EncodedImageDataset {
 public:
  explicit Food101(Options& options)
      : root_(options.path("root", "~/data/food-101", "Folder of images/ and meta/.")) {
    look_.shape = {3, 0, 0};
    look_.classes = 101;
    read_colour_options(options, {kImageNetMean, kImageNetDeviation, 224}, look_);
  }

  bool sorted_by_class() const override { return true; }

  void open(const DatasetRequest&) override {
    std::map<std::string, std::int64_t> classes;
    for (const std::string& name : list("classes.txt")) classes.emplace(name, 0);
    std::int64_t next = 0;
    for (auto& [name, label] : classes) label = next++;
    look_.classes = next;
    train_ = images("train.txt", classes);
    test_ = images("test.txt", classes);
  }

 private:
  /// Reads the lines of a file in meta/; throws Error{Data} if it is missing or empty.
  std::vector<std::string> list(const std::string& name) const {
    const std::filesystem::path path = root_ / "meta" / name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw data_error(path,
                       "no such file. It is part of Food-101 (food-101.tar.gz, md5 "
                       "85eeb15f3717b99a5da872d97d918f87), available from the data set's page at "
                       "the Computer Vision Lab of ETH Zürich. Set dataset.root to the folder "
                       "food-101 that holds images and meta" +
                           fetch_advice("food101"));
    std::vector<std::string> lines = entries_of(read_file(path, kLargestList));
    if (lines.empty()) throw data_error(path, "is empty");
    return lines;
  }

  /// Reads lines CLASS/ID, in the file's order. Missing images are reported here rather than in the
  /// middle of training.
  EncodedImages images(const std::string& name,
                       const std::map<std::string, std::int64_t>& classes) const {
    EncodedImages split;
    split.root = root_ / "images";
    std::int64_t record = 0;
    for (const std::string& line : list(name)) {
      const auto fail = [&](const std::string& what) {
        throw data_error(root_ / "meta" / name, "record ", record, " (counted from 0) is '", line,
                         "'; ", what);
      };
      const std::size_t slash = line.find('/');
      if (slash == std::string::npos || slash + 1 == line.size()) fail("expected CLASS/ID");
      if (std::ranges::count(pipewright::split(line, '/'), "..") > 0)
        fail("it leads out of the folder images");
      const auto label = classes.find(line.substr(0, slash));
      if (label == classes.end()) fail("classes.txt has no such class");
      std::error_code ignored;
      if (!std::filesystem::exists(split.root / (line + ".jpg"), ignored))
        fail(concat("there is no ", (split.root / (line + ".jpg")).string()));
      split.names.push_back(line + ".jpg");
      split.labels.push_back(label->second);
      ++record;
    }
    return split;
  }

  std::filesystem::path root_;
};

}  // namespace

PIPEWRIGHT_DATASET(food101, Food101,
                   "Food-101: photographs of 101 dishes in many sizes, 75,750 + 25,250.")

}  // namespace pipewright
