// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

class FashionMnist : public DatasetFiles {
 protected:
  FashionMnist() : DatasetFiles("fashion_mnist") {
    put(folder_ / "train-images-idx3-ubyte", idx({2051, 60000, 28, 28}, 60000 * 784));
    put(folder_ / "train-labels-idx1-ubyte", idx({2049, 60000}, 60000));
    put(folder_ / "t10k-images-idx3-ubyte", idx({2051, 10000, 28, 28}, 10000 * 784));
    put(folder_ / "t10k-labels-idx1-ubyte.gz", gzipped(idx({2049, 10000}, 10000)));
  }
};

TEST_F(FashionMnist, ScalesAndNormalises) {
  const auto data = opened();
  EXPECT_EQ(data->size(Split::Train), 60'000);
  EXPECT_EQ(data->size(Split::Test), 10'000);
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{1, 28, 28}));
  const Batch batch = data->batch(Split::Test, first_indices(2), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(values_of<float>(batch.x[0])[7], (7 / 255.0f - 0.2860f) / 0.3530f);
  const RandomStream stream(1, "augmentation");
  EXPECT_EQ(values_of<float>(data->batch(Split::Test, first_indices(2), &stream).x[0]),
            values_of<float>(batch.x[0]))
      << "augment is false unless asked for";
}

TEST_F(FashionMnist, NamesWhatIsDamaged) {
  const std::string images = "t10k-images-idx3-ubyte", labels = "train-labels-idx1-ubyte";
  EXPECT_TRUE(contains(damaged(images, idx({2049, 10000, 28, 28}, 7840000)),
                       "magic number 2049, must be 2051"));
  EXPECT_TRUE(contains(damaged(images, idx({2051, 9999, 28, 28}, 7840000)), "holds 9999 records"));
  EXPECT_TRUE(contains(damaged(images, idx({2051, 10000, 32, 28}, 7840000)), "size 32"));
  EXPECT_TRUE(contains(damaged(images, idx({2051, 10000, 28, 28}, 7839999)), "7840015 bytes"));
  std::string bad = idx({2049, 60000}, 60000);
  bad[8 + 59999] = 10;
  EXPECT_TRUE(contains(damaged(labels, bad), "record 59999"));
  EXPECT_TRUE(contains(damaged("t10k-labels-idx1-ubyte.gz", "rubbish"), "not a gzip file"));
  EXPECT_EQ(refusal(), "");
}

TEST_F(FashionMnist, SaysWhatIsMissingAndWhereToGetIt) {
  std::filesystem::remove(folder_ / "train-labels-idx1-ubyte");
  const std::string error = refusal();
  EXPECT_TRUE(contains(error, (folder_ / "train-labels-idx1-ubyte").string()));
  EXPECT_TRUE(contains(error, "25c81989df183df01b3e8a0aad5dffbe"));
  EXPECT_TRUE(contains(error, "Zalando"));
}

// Labels and sums were computed from the official files by another program.
TEST(FashionMnistFiles, AreReadAsPublished) {
  PIPEWRIGHT_NEEDS_REAL_DATA("fashion-mnist");
  const auto data =
      make_dataset("fashion_mnist", "{root: '" + fixtures::real_data("fashion-mnist").string() +
                                        "', mean: 0, std: 1}");
  data->open({});
  struct Known {
    Split split;
    std::vector<std::int64_t> first_labels;
    std::int64_t label_sum, pixel_sum, last_image;
  };
  for (const Known& known :
       {Known{Split::Train, {9, 0, 0, 3, 0, 2, 7, 2, 5, 5}, 270000, 3431114169, 16684},
        Known{Split::Test, {9, 2, 1, 1, 6, 1, 4, 6, 5, 7}, 45000, 573469082, 24390}}) {
    const auto indices = first_indices(data->size(known.split));
    const Batch batch = data->batch(known.split, indices, nullptr);
    const auto y = values_of<std::int64_t>(batch.y);
    EXPECT_EQ(std::vector(y.begin(), y.begin() + 10), known.first_labels);
    EXPECT_EQ(std::accumulate(y.begin(), y.end(), std::int64_t{0}), known.label_sum);
    const auto x = values_of<float>(batch.x[0]);
    const auto pixels = [](auto begin, auto end) {
      return std::accumulate(begin, end, std::int64_t{0}, [](std::int64_t sum, float p) {
        return sum + std::lround(p * 255.0f);
      });
    };
    EXPECT_EQ(pixels(x.begin(), x.end()), known.pixel_sum);
    EXPECT_EQ(pixels(x.end() - 784, x.end()), known.last_image);
  }
}

}  // namespace
}  // namespace pipewright
