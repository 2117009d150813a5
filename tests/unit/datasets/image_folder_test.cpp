// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/datasets/solid_image.h"

namespace pipewright {
namespace {

/// Twelve images of three classes. Image i of class c has the colour 10 c + i.
class ImageFolder : public DatasetFiles {
 protected:
  ImageFolder() : DatasetFiles("image_folder", "mean: [0, 0, 0], std: [1, 1, 1], size: 8") {
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < 4; ++i)
        write(concat(kClasses[c], "/", i, ".png"), solid_png(16, 20, 10 * c + i));
  }
  /// The colours of a split in order; each tells its class.
  std::vector<int> colours(const Dataset& data, Split split) {
    const Batch batch = data.batch(split, first_indices(data.size(split)), nullptr);
    std::vector<int> colours;
    for (std::int64_t i = 0; i < data.size(split); ++i) {
      colours.push_back(static_cast<int>(std::lround(255 * batch.x[0][i][0][4][4].item<float>())));
      EXPECT_EQ(batch.y[i].item<std::int64_t>(), colours.back() / 10);
    }
    return colours;
  }

  static constexpr const char* kClasses[] = {"ant", "bee", "cat"};
};

TEST_F(ImageFolder, DrawsItsTestImagesOnceEach) {
  std::set<std::vector<int>> drawn;
  for (const int seed : {0, 1, 2}) {
    const auto data = opened(concat("split: 0.25, seed: ", seed));
    EXPECT_EQ(data->classes(), 3);
    EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{3, 8, 8}));
    const std::vector<int> train = colours(*data, Split::Train), test = colours(*data, Split::Test);
    EXPECT_EQ(test.size(), 3U);
    std::vector<int> all;
    std::ranges::merge(train, test, std::back_inserter(all));
    EXPECT_EQ(all, (std::vector<int>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}));
    drawn.insert(test);
  }
  EXPECT_GT(drawn.size(), 1U);
}

TEST_F(ImageFolder, KnowsItsClassesBeforeItIsOpened) {
  const SampleForm form = made("split: 2")->form(Task::Classify);
  EXPECT_EQ(form.classes, 3);
  EXPECT_EQ(form.shape, (std::vector<std::int64_t>{3, 8, 8}));
}

TEST_F(ImageFolder, WhatMacOsAddsIsNoClass) {
  for (const char* name : {"__MACOSX/ant/._0.png", "__MACOSX/._ant", "ant/._0.png"})
    write(name, "x");
  EXPECT_EQ(made("split: 2")->form(Task::Classify).classes, 3);
  const auto data = opened("split: 2");
  EXPECT_EQ(data->classes(), 3);
  EXPECT_EQ(data->size(Split::Train) + data->size(Split::Test), 12);
  EXPECT_TRUE(data->remarks().empty());
}

TEST_F(ImageFolder, CountsTheFilesThatAreLeftOut) {
  EXPECT_TRUE(opened("split: 2")->remarks().empty());
  for (const char* name : {"a.webp", "b.WEBP", "c.txt", ".hidden"})
    fixtures::put(folder_ / "ant" / name, "x");
  const std::vector<std::string> remarks = opened("split: 2")->remarks();
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_TRUE(contains(remarks[0], "1 file ending in .txt is left out; images are .jpg"));
  EXPECT_TRUE(contains(remarks[1], "2 files ending in .webp are left out"));
}

TEST_F(ImageFolder, SaysWhatIsMissing) {
  EXPECT_TRUE(contains(refusal("split: 0", ErrorKind::Experiment), "dataset.split is 0; expected"));
  EXPECT_TRUE(contains(refusal("split: 12", ErrorKind::Experiment), "takes 12 samples of the 12"));
  std::filesystem::create_directory(folder_ / "dog");
  EXPECT_TRUE(contains(refusal("split: 2"), "dog"));
  for (const char* name : {"ant", "bee", "cat", "dog"}) std::filesystem::remove_all(folder_ / name);
  EXPECT_TRUE(contains(refusal("split: 2"), "holds no folders"));
  const auto absent = make_dataset("image_folder", "{root: /absent, split: 2}");
  EXPECT_TRUE(contains(error_of([&] { absent->open({}); }), "no such folder"));
}

}  // namespace
}  // namespace pipewright
