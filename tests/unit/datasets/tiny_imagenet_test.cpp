// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/datasets/image_samples.h"
#include "tests/unit/datasets/solid_image.h"
#include "tests/unit/datasets/tar_fixture.h"

namespace pipewright {
namespace {

/// Three classes, not in sorted order; the grey of an image says which it is.
std::map<std::string, std::string> made_up_files() {
  return {{"wnids.txt", "n3\nn1\r\nn2\n"},
          {"words.txt", "n1\tgoldfish\n"},
          {"train/n1/n1_boxes.txt", "n1_0.JPEG\t0\t0\t1\t1\n"},
          {"train/n1/images/n1_1.JPEG", solid_png(64, 64, 11)},
          {"train/n1/images/n1_0.JPEG", solid_png(64, 64, 10)},
          {"train/n2/images/n2_0.JPEG", solid_png(64, 64, 20)},
          {"train/n3/images/n3_0.JPEG", solid_png(64, 64, 30)},
          {"val/images/val_0.JPEG", solid_png(64, 64, 100)},
          {"val/images/val_1.JPEG", solid_png(64, 64, 101)},
          {"val/val_annotations.txt", "val_1.JPEG\tn3\t0\t0\t9\t9\nval_0.JPEG\tn1\t0\t0\t9\t9\n"}};
}

class TinyImagenet : public DatasetFiles {
 protected:
  TinyImagenet() : DatasetFiles("tiny_imagenet", "mean: [0, 0, 0], std: [1, 1, 1]") {}
  /// In the place of all files that are there.
  void write_all(const std::map<std::string, std::string>& files, const std::string& within = "") {
    std::filesystem::remove_all(folder_.text());
    for (const auto& [name, content] : files) write(within + name, content);
  }
  void expect_made_up_images(const Dataset& data) {
    EXPECT_EQ(data.classes(), 3);
    EXPECT_EQ(data.sample_shape(), (std::vector<std::int64_t>{3, 64, 64}));
    EXPECT_EQ(data.size(Split::Train), 4);
    EXPECT_EQ(data.size(Split::Test), 2);
    const Batch train = data.batch(Split::Train, first_indices(4), nullptr);
    EXPECT_EQ(values_of<std::int64_t>(train.y), (std::vector<std::int64_t>{0, 0, 1, 2}));
    const auto x = values_of<float>(train.x[0]);
    const std::array greys{10, 11, 20, 30};
    for (std::size_t i = 0; i < greys.size(); ++i)
      EXPECT_EQ(x[i * 3 * 64 * 64 + 77], static_cast<float>(greys[i]) / 255.0f);
    const Batch test = data.batch(Split::Test, first_indices(2), nullptr);
    EXPECT_EQ(values_of<std::int64_t>(test.y), (std::vector<std::int64_t>{2, 0}));
    EXPECT_EQ(values_of<float>(test.x[0])[0], 101 / 255.0f);
  }
};

TEST_F(TinyImagenet, LabelsByTheSortedNamesOfClasses) {
  write_all(made_up_files());
  expect_made_up_images(*opened());
  write_all(made_up_files(), "tiny-imagenet-200/");
  expect_made_up_images(*opened());
}

TEST_F(TinyImagenet, IsReadFromAnArchive) {
  std::string archive;
  for (const auto& [name, content] : made_up_files())
    archive += tar_member("tiny-imagenet-200/" + name, content);
  put(folder_ / "tiny-imagenet-200.tar.gz", gzipped(archive + tar_end()));
  expect_made_up_images(*opened());
  expect_made_up_images(*opened("", "/tiny-imagenet-200.tar.gz"));
}

TEST_F(TinyImagenet, MakesImagesOfTheSizeAskedFor) {
  write_all(made_up_files());
  const auto data = opened("size: 40, eval_size: 32");
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{3, 40, 40}));
  const RandomStream stream(1, "augment");
  const Batch train = data->batch(Split::Train, first_indices(3), &stream);
  EXPECT_EQ(train.x[0].sizes().vec(), (std::vector<std::int64_t>{3, 3, 40, 40}));
  EXPECT_EQ(values_of<float>(train.x[0])[3 * 1600 + 5], 11 / 255.0f);
  EXPECT_EQ(data->batch(Split::Test, first_indices(2), nullptr).x[0].sizes().vec(),
            (std::vector<std::int64_t>{2, 3, 32, 32}));
}

TEST_F(TinyImagenet, SaysWhatIsMissingAndWhereToGetIt) {
  for (const char* name : {"wnids.txt", "val/val_annotations.txt"}) {
    auto files = made_up_files();
    files.erase(name);
    write_all(files);
    const std::string error = refusal();
    EXPECT_TRUE(contains(error, "/" + std::string(name) + ": no such file"));
    EXPECT_TRUE(contains(error, "90528d7ca1a48142e341f4ef8d21d0de"));
    EXPECT_TRUE(contains(error, "CS231n"));
  }
  write_all({});
  EXPECT_TRUE(contains(refusal(), "/wnids.txt: no such file"));
}

TEST_F(TinyImagenet, NamesFileAndRecordOfWhatIsWrong) {
  const auto with = [this](const std::string& name, const std::string& content) {
    auto files = made_up_files();
    files[name] = content;
    write_all(files);
    return refusal();
  };
  const std::string annotations = "val/val_annotations.txt";
  EXPECT_TRUE(contains(with(annotations, "val_0.JPEG\tn1\nval_1.JPEG\tn9\n"),
                       "val_annotations.txt: record 1 (counted from 0): class n9 is not in"));
  EXPECT_TRUE(contains(with(annotations, "val_7.JPEG\tn1\n"), "there is no val/images/val_7.JPEG"));
  EXPECT_TRUE(contains(with(annotations, "val_0.JPEG\tn1\nval_0.JPEG\tn1\n"), "record 1"));
  EXPECT_TRUE(contains(with(annotations, "val_0.JPEG n1\n"), "is not '<file> <tab> <class>"));
  EXPECT_TRUE(contains(with(annotations, "\n"), "lists no images"));
  EXPECT_TRUE(contains(with("wnids.txt", "n1\nn2\nn3\nn4\n"), "train/n4: no images"));
  EXPECT_TRUE(contains(with("wnids.txt", "n1\nn2\n"), "train/n3/images/n3_0.JPEG: is of class n3"));
  EXPECT_TRUE(contains(with("wnids.txt", ""), "wnids.txt: names no class"));
  EXPECT_TRUE(contains(with("train/n1/images/n1_5.JPEG", std::string(2 << 20, 'x')), "n1_5.JPEG"));
}

TEST_F(TinyImagenet, NamesTheImageThatIsDamaged) {
  const auto with = [this](const std::string& content, const std::string& more = "") {
    auto files = made_up_files();
    files["train/n2/images/n2_0.JPEG"] = content;
    write_all(files);
    const auto data = opened(more);
    const std::string error =
        error_of([&] { data->batch(Split::Train, first_indices(4), nullptr); });
    EXPECT_TRUE(error.empty() || contains(error, "/train/n2/images/n2_0.JPEG: "));
    return error;
  };
  const std::string png = solid_png(64, 64, 20);
  EXPECT_TRUE(contains(with(png.substr(0, 60)), "damaged PNG image"));
  EXPECT_TRUE(contains(with(sample_file("jpeg_422").substr(0, 650)), "damaged JPEG image"));
  EXPECT_TRUE(contains(with("text"), "neither a JPEG nor a PNG"));
  EXPECT_TRUE(contains(with(""), "is empty"));
  EXPECT_TRUE(contains(with(solid_png(63, 64, 20)), "64 × 63 pixels, must be 64 × 64"));
  EXPECT_EQ(with(solid_png(63, 64, 20), "size: 32"), "");
}

// Computed by Pillow 12.3 and NumPy from the same archive.
TEST(TinyImagenetFiles, AreReadAsByAnotherProgram) {
  PIPEWRIGHT_NEEDS_REAL_DATA("tiny-imagenet-200");
  const std::string root =
      (fixtures::real_data("tiny-imagenet-200") / "tiny-imagenet-200_10classes.tar.gz").string();
  const auto data =
      make_dataset("tiny_imagenet", "{root: '" + root + "', mean: [0, 0, 0], std: [1, 1, 1]}");
  data->open({});
  EXPECT_EQ(data->classes(), 10);
  EXPECT_EQ(data->size(Split::Train), 5000);
  EXPECT_EQ(data->size(Split::Test), 500);
  const auto pixel_sum = [&](Split split) {
    std::int64_t sum = 0;
    for (std::int64_t index = 0; index < data->size(split); ++index)
      for (const float pixel :
           values_of<float>(data->batch(split, std::span(&index, 1), nullptr).x[0]))
        sum += std::lround(pixel * 255.0f);
    return sum;
  };
  EXPECT_EQ(pixel_sum(Split::Train), 7042374023);
  EXPECT_EQ(pixel_sum(Split::Test), 704072284);
  const Batch ends = data->batch(Split::Train, std::vector<std::int64_t>{0, 2500, 4999}, nullptr);
  EXPECT_EQ(values_of<std::int64_t>(ends.y), (std::vector<std::int64_t>{0, 5, 9}));
  const auto x = values_of<float>(ends.x[0]);
  const auto pixel = [&](std::size_t image, std::size_t channel, std::size_t at) {
    return std::lround(x[(image * 3 + channel) * 4096 + at] * 255.0f);
  };
  EXPECT_EQ((std::array{pixel(0, 0, 0), pixel(0, 1, 0), pixel(0, 2, 0)}),
            (std::array{255L, 136L, 193L}));
  EXPECT_EQ((std::array{pixel(2, 0, 4095), pixel(2, 1, 4095), pixel(2, 2, 4095)}),
            (std::array{24L, 17L, 25L}));
  const auto y = values_of<std::int64_t>(data->batch(Split::Test, first_indices(500), nullptr).y);
  EXPECT_EQ(std::vector(y.begin(), y.begin() + 12),
            (std::vector<std::int64_t>{5, 5, 8, 2, 5, 0, 4, 2, 4, 2, 1, 1}));
  EXPECT_EQ(std::accumulate(y.begin(), y.end(), std::int64_t{0}), 2250);
}

// As torchvision's Resize(256), CenterCrop(224), ToTensor and Normalize.
TEST(TinyImagenetFiles, AreResizedAsByAnotherProgram) {
  PIPEWRIGHT_NEEDS_REAL_DATA("tiny-imagenet-200");
  const std::string root =
      (fixtures::real_data("tiny-imagenet-200") / "tiny-imagenet-200_10classes.tar.gz").string();
  const auto data = make_dataset("tiny_imagenet", "{root: '" + root + "', size: 224}");
  data->open({});
  const auto x = values_of<float>(data->batch(Split::Test, first_indices(2), nullptr).x[0]);
  const auto value = [&](std::size_t image, std::size_t channel, std::size_t row,
                         std::size_t column) {
    return x[((image * 3 + channel) * 224 + row) * 224 + column];
  };
  EXPECT_EQ(value(0, 0, 0, 0), -0.5424266f);
  EXPECT_EQ(value(0, 1, 100, 50), -1.107843f);
  EXPECT_EQ(value(0, 2, 223, 223), 2.3611329f);
  EXPECT_EQ(value(1, 0, 0, 0), 0.14256364f);
  EXPECT_EQ(value(1, 1, 100, 50), 1.4831933f);
  EXPECT_EQ(value(1, 2, 223, 223), -0.9504139f);
}

}  // namespace
}  // namespace pipewright
