// SPDX-License-Identifier: Apache-2.0
/// Images of the user's own: one folder with a folder for each class, without a part for testing,
/// which is drawn. Files are read when a batch needs them.
#include "core/base/error_at.h"
#include "datasets/drawn_split.h"
#include "datasets/images/class_folders.h"

namespace pipewright {
namespace {

constexpr double kShareOfTests = 0.2;

class ImageFolder final : public EncodedImageDataset {
 public:
  explicit ImageFolder(Options& options)
      : root_(options.required_path(
            "root",
            "Folder of CLASS/…: images (.jpg, .jpeg, .png) in and below a folder for each class. "
            "Labels are the ranks of the sorted names of classes.")),
        split_(options, kShareOfTests) {
    look_.shape = {3, 0, 0};
    read_colour_options(options, {kImageNetMean, kImageNetDeviation, 224}, look_);
    if (!split_.wanted())
      options.problem("split", "is 0; expected the share or number of test images, as 0.2");
  }

  bool sorted_by_class() const override { return true; }

  SampleForm form(Task /*targets*/) const override {
    SampleForm form{.shape = sample_shape()};
    std::error_code ignored;
    if (std::filesystem::is_directory(root_, ignored))
      form.classes = std::ssize(folder_names(root_));
    return form;
  }

  void open(const DatasetRequest&) override {
    std::error_code ignored;
    if (!std::filesystem::is_directory(root_, ignored))
      throw data_error(root_, "no such folder; expected one with a folder for each class");
    const std::vector<std::string> classes = folder_names(root_);
    if (classes.empty()) throw data_error(root_, "holds no folders: one for each class is needed");
    look_.classes = std::ssize(classes);
    const EncodedImages all = images_by_class(root_, classes);
    const auto [train, test] = split_.draw(all.size(), root_.filename().string());
    train_ = chosen(all, train);
    test_ = chosen(all, test);
    remarks_ = left_out_remarks(all);
  }

  std::vector<std::string> remarks() const override { return remarks_; }

 private:
  static EncodedImages chosen(const EncodedImages& all, const std::vector<std::int64_t>& indices) {
    EncodedImages part{.root = all.root, .names = {}, .labels = {}, .contents = {}};
    for (const std::int64_t index : indices) {
      part.names.push_back(all.names[static_cast<std::size_t>(index)]);
      part.labels.push_back(all.labels[static_cast<std::size_t>(index)]);
    }
    return part;
  }

  std::filesystem::path root_;
  DrawnSplit split_;
  std::vector<std::string> remarks_;
};

}  // namespace

PIPEWRIGHT_DATASET(image_folder, ImageFolder,
                   "Your colour images in a folder for each class; some are drawn for testing.")

}  // namespace pipewright
