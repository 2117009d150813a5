// SPDX-License-Identifier: Apache-2.0
/// ImageNet, or any other images, in one folder per class: train/CLASS/… and val/CLASS/…. Files are
/// read when a batch needs them, as ImageNet is larger than most memories.
#include <algorithm>

#include "core/base/error_at.h"
#include "datasets/images/class_folders.h"

namespace pipewright {
namespace {

class ImagenetFolder final : public EncodedImageDataset {
 public:
  explicit ImagenetFolder(Options& options)
      : root_(options.path("root", "~/data/imagenet",
                           "Folder of train/CLASS/… and val/CLASS/…: images (.jpg, .jpeg, .png) "
                           "in and below a folder for each class. Labels are the ranks of the "
                           "sorted names of classes.")),
        evaluation_(options.text("test", "val", "Name of the folder of test images in root.")) {
    look_.shape = {3, 0, 0};
    read_colour_options(options, {kImageNetMean, kImageNetDeviation, 224}, look_);
  }

  bool sorted_by_class() const override { return true; }

  SampleForm form(Task /*targets*/) const override {
    SampleForm form{.shape = sample_shape()};
    std::error_code ignored;
    if (std::filesystem::is_directory(root_ / "train", ignored))
      form.classes = std::ssize(folder_names(root_ / "train"));
    return form;
  }

  void open(const DatasetRequest&) override {
    for (const std::string& part : {std::string("train"), evaluation_}) require_folder(part);
    const std::vector<std::string> classes = folder_names(root_ / "train");
    if (classes.empty())
      throw data_error(root_ / "train", "holds no folders: one for each class is needed");
    for (const std::string& name : folder_names(root_ / evaluation_))
      if (!std::ranges::binary_search(classes, name))
        throw data_error((root_ / evaluation_ / name),
                         "is a class without training images: no train/", name);
    look_.classes = std::ssize(classes);
    train_ = images_by_class(root_ / "train", classes);
    test_ = images_by_class(root_ / evaluation_, classes);
  }

  std::vector<std::string> remarks() const override {
    std::vector<std::string> all = left_out_remarks(train_);
    for (std::string& remark : left_out_remarks(test_)) all.push_back(std::move(remark));
    return all;
  }

 private:
  void require_folder(const std::string& part) const {
    std::error_code ignored;
    if (std::filesystem::is_directory(root_ / part, ignored)) return;
    throw data_error((root_ / part),
                     "no such folder. ImageNet (ILSVRC 2012: ILSVRC2012_img_train.tar, md5 "
                     "1d675b47d978889d74fa0da5fadfb00e, and ILSVRC2012_img_val.tar, md5 "
                     "29b22e2961454d5413ddabcf34fc5622) is available from the ImageNet site after "
                     "registration; its images must be sorted into train/CLASS and ",
                     evaluation_, "/CLASS. Set dataset.root to the folder that holds both");
  }

  std::filesystem::path root_;
  std::string evaluation_;
};

}  // namespace

PIPEWRIGHT_DATASET(imagenet_folder, ImagenetFolder,
                   "ImageNet, or other colour images in a folder for each class: train/CLASS/…, "
                   "val/CLASS/….")

}  // namespace pipewright
