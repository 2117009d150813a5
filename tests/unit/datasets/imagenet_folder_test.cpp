// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/datasets/image_samples.h"
#include "tests/unit/datasets/solid_image.h"

namespace pipewright {
namespace {

class ImagenetFolder : public DatasetFiles {
 protected:
  ImagenetFolder() : DatasetFiles("imagenet_folder", "mean: [0, 0, 0], std: [1, 1, 1]") {
    write("train/n20/b.JPEG", solid_png(9, 30, 22));
    write("train/n20/a.png", solid_png(40, 20, 21));
    write("train/n100/x.jpg", solid_png(10, 10, 11));
    write("train/n100/images/a.Jpeg", solid_png(70, 10, 12));
    write("train/n100/readme.txt", "no image");
    write("train/n100/._x.jpg", "macOS");
    write("train/list.txt", "no class");
    write("val/n20/z.PNG", solid_png(12, 50, 29));
    write("val/n100/y.JPG", sample_file("jpeg_grey"));
  }
};

TEST_F(ImagenetFolder, LabelsByTheSortedNamesOfFolders) {
  const auto data = opened("size: 8");
  EXPECT_EQ(data->classes(), 2);
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{3, 8, 8}));
  EXPECT_EQ(data->size(Split::Train), 4);
  EXPECT_EQ(data->size(Split::Test), 2);
  const std::array greys{11, 12, 21, 22};
  const RandomStream stream(1, "augment");
  for (const RandomStream* augmentation : {&stream, static_cast<const RandomStream*>(nullptr)}) {
    const Batch batch = data->batch(Split::Train, first_indices(4), augmentation);
    EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{0, 0, 1, 1}));
    const auto x = values_of<float>(batch.x[0]);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(x[i], static_cast<float>(greys[i / 192]) / 255.0f);
  }
}

TEST_F(ImagenetFolder, NeedsASize) {
  EXPECT_NE(refusal("size: 0", ErrorKind::Experiment), "");
  EXPECT_EQ(opened("eval_size: 8")->sample_shape(), (std::vector<std::int64_t>{3, 224, 224}));
}

TEST_F(ImagenetFolder, SaysWhatIsMissing) {
  std::filesystem::remove(folder_ / "train/n20/a.png");
  std::filesystem::remove(folder_ / "train/n20/b.JPEG");
  EXPECT_TRUE(contains(refusal("size: 8"), "train/n20: class n20 has no images"));
  std::filesystem::remove(folder_ / "train/n20");
  EXPECT_TRUE(contains(refusal("size: 8"), "val/n20: is a class without training images"));
  std::filesystem::create_directories(folder_ / "val/n100");
  std::filesystem::remove_all(folder_ / "val/n20");
  std::filesystem::remove_all(folder_ / "val/n100");
  EXPECT_TRUE(contains(refusal("size: 8"), "val/n100: "));
  std::filesystem::remove_all(folder_ / "val");
  EXPECT_TRUE(contains(refusal("size: 8"), "val: no such folder. ImageNet"));
  std::filesystem::remove_all(folder_ / "train/n100");
  std::filesystem::create_directories(folder_ / "val");
  EXPECT_TRUE(contains(refusal("size: 8"), "train: holds no folders"));
}

TEST_F(ImagenetFolder, NamesTheImageThatIsDamagedOrGone) {
  const auto data = opened("size: 8");
  const auto error = [&] {
    return error_of([&] { data->batch(Split::Train, first_indices(4), nullptr); });
  };
  write("train/n20/b.JPEG", sample_file("jpeg_420").substr(0, 640));
  EXPECT_TRUE(contains(error(), (folder_ / "train/n20/b.JPEG").string() + ": damaged JPEG image"));
  std::filesystem::remove(folder_ / "train/n20/b.JPEG");
  EXPECT_TRUE(contains(error(), "train/n20/b.JPEG: cannot open"));
}

}  // namespace
}  // namespace pipewright
