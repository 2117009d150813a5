// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/datasets/solid_image.h"

namespace pipewright {
namespace {

class Food101 : public DatasetFiles {
 protected:
  Food101() : DatasetFiles("food101", "mean: [0, 0, 0], std: [1, 1, 1], size: 8") {
    write("meta/classes.txt", "pizza\napple_pie\n");
    write("meta/train.txt", "pizza/1\napple_pie/7\npizza/2\n");
    write("meta/test.txt", "apple_pie/8");
    write("images/pizza/1.jpg", solid_png(10, 20, 1));
    write("images/pizza/2.jpg", solid_png(30, 20, 2));
    write("images/apple_pie/7.jpg", solid_png(16, 16, 7));
    write("images/apple_pie/8.jpg", solid_png(50, 20, 8));
  }
};

TEST_F(Food101, IsWhatItsListsSayInTheirOrder) {
  const auto data = opened();
  EXPECT_EQ(data->classes(), 2);
  EXPECT_EQ(data->size(Split::Test), 1);
  const Batch batch = data->batch(Split::Train, first_indices(3), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{1, 0, 1}))
      << "labels are ranks of sorted classes";
  const auto x = values_of<float>(batch.x[0]);
  EXPECT_EQ((std::array{x[0], x[192], x[384]}), (std::array{1 / 255.0f, 7 / 255.0f, 2 / 255.0f}));
}

TEST_F(Food101, NamesFileAndRecordOfWhatIsWrong) {
  EXPECT_TRUE(contains(damaged("meta/train.txt", "pizza/1\nsoup/1\n"),
                       "record 1 (counted from 0) is 'soup/1'; classes.txt has no such class"));
  EXPECT_TRUE(contains(damaged("meta/train.txt", "pizza/3\n"), "images/pizza/3.jpg"));
  EXPECT_TRUE(contains(damaged("meta/train.txt", "pizza\n"), "expected CLASS/ID"));
  EXPECT_TRUE(contains(damaged("meta/test.txt", "\n"), "is empty"));
  const auto data = opened();
  write("images/pizza/2.jpg", "rubbish");
  EXPECT_TRUE(contains(error_of([&] { data->batch(Split::Train, first_indices(3), nullptr); }),
                       "images/pizza/2.jpg: is neither a JPEG nor a PNG"));
}

TEST_F(Food101, SaysWhatIsMissingAndWhereToGetIt) {
  std::filesystem::remove(folder_ / "meta/test.txt");
  const std::string error = refusal();
  EXPECT_TRUE(contains(error, (folder_ / "meta/test.txt").string()));
  EXPECT_TRUE(contains(error, "85eeb15f3717b99a5da872d97d918f87"));
  EXPECT_TRUE(contains(error, "ETH Zürich"));
}

// Computed by Pillow 12.3 and NumPy from the same files.
TEST(Food101Files, AreReadAndResizedAsByAnotherProgram) {
  PIPEWRIGHT_NEEDS_REAL_DATA("food-101");
  const std::string root = "{root: '" + fixtures::real_data("food-101").string() + "'";
  const auto plain = make_dataset("food101", root + ", mean: [0, 0, 0], std: [1, 1, 1]}");
  const auto data = make_dataset("food101", root + "}");
  struct Known {
    Split split;
    std::vector<std::int64_t> labels;
    std::int64_t pixel_sum;
    std::array<float, 3> values;
  };
  plain->open({});
  data->open({});
  EXPECT_EQ(data->classes(), 10);
  for (const Known& known : {Known{Split::Train,
                                   {0, 0, 0, 0, 1, 1, 1, 1, 2, 2},
                                   623281039,
                                   {0.8446785f, 0.81792724f, -1.7347276f}},
                             Known{Split::Test,
                                   {0, 0, 1, 1, 2, 2, 3, 3, 4, 4},
                                   297094986,
                                   {0.878928f, -0.37254897f, 0.827364f}}}) {
    const auto indices = first_indices(known.split == Split::Train ? 40 : 20);
    ASSERT_EQ(plain->size(known.split), std::ssize(indices));
    const Batch batch = plain->batch(known.split, indices, nullptr);
    std::int64_t sum = 0;
    for (const float pixel : values_of<float>(batch.x[0])) sum += std::lround(pixel * 255.0f);
    EXPECT_EQ(sum, known.pixel_sum);
    const auto y = values_of<std::int64_t>(batch.y);
    EXPECT_EQ(std::vector(y.begin(), y.begin() + 10), known.labels);
    const auto x = values_of<float>(data->batch(known.split, first_indices(1), nullptr).x[0]);
    EXPECT_EQ((std::array{x[0], x[(224 + 100) * 224 + 50], x[3 * 224 * 224 - 1]}), known.values);
  }
}

}  // namespace
}  // namespace pipewright
