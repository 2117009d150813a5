// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

constexpr std::size_t kCifar10Record = 3073;
constexpr std::size_t kRecords = 10'000;

/// A file of the right form: record i has label i mod 10 and pixels of value (i + number) mod 256.
std::string cifar10_made_up_file(std::size_t number) {
  std::string file;
  file.reserve(kCifar10Record * kRecords);
  for (std::size_t i = 0; i < kRecords; ++i) {
    file += static_cast<char>(i % 10);
    file.append(kCifar10Record - 1, static_cast<char>((i + number) % 256));
  }
  return file;
}

class Cifar10 : public DatasetFiles {
 protected:
  Cifar10() : DatasetFiles("cifar10") {}
};

TEST_F(Cifar10, SaysWhatIsMissingAndWhereToGetIt) {
  const std::string error = refusal();
  EXPECT_TRUE(contains(error, (folder_ / "data_batch_1.bin").string()));
  EXPECT_TRUE(contains(error, "data_batch_1.bin.gz"));
  EXPECT_TRUE(contains(error, "c32a1d4ab5d03f1284b67883e8d87530"));
  EXPECT_TRUE(contains(error, "University of Toronto"));
  EXPECT_TRUE(contains(error, "dataset.root"));
}

TEST_F(Cifar10, TakesAllTrainingFilesThatAreThereOrAsManyAsAsked) {
  put(folder_ / "data_batch_1.bin", cifar10_made_up_file(1));
  put(folder_ / "data_batch_2.bin.gz", gzipped(cifar10_made_up_file(2)));
  EXPECT_TRUE(contains(refusal(), "test_batch.bin"));
  put(folder_ / "test_batch.bin", cifar10_made_up_file(9));

  const auto all = opened("mean: [0, 0, 0], std: [1, 1, 1]");
  EXPECT_EQ(all->size(Split::Train), 20'000);
  EXPECT_EQ(all->size(Split::Test), 10'000);
  const std::vector<std::int64_t> indices{19'999};
  const Batch last = all->batch(Split::Train, indices, nullptr);
  EXPECT_EQ(last.y.const_data_ptr<std::int64_t>()[0], 9);
  EXPECT_EQ(values_of<float>(last.x[0]),
            std::vector<float>(3072, static_cast<float>((9999 + 2) % 256) / 255.0f));

  EXPECT_EQ(opened("batches: 1")->size(Split::Train), 10'000);
  EXPECT_TRUE(contains(refusal("batches: 3"), "data_batch_3.bin"));

  put(folder_ / "data_batch_5.bin", cifar10_made_up_file(5));
  EXPECT_TRUE(contains(refusal(), "data_batch_3.bin")) << "a hole is an error";
}

TEST_F(Cifar10, NamesFileAndRecordOfWhatIsDamaged) {
  const std::string good = cifar10_made_up_file(1);
  put(folder_ / "test_batch.bin", good);
  const auto with_first = [&](const std::string& name, const std::string& content) {
    put(folder_ / name, content);
    const std::string error = refusal();
    std::filesystem::remove(folder_ / name);
    EXPECT_TRUE(contains(error, name));
    return error;
  };
  std::string bad = good;
  bad[kCifar10Record * 4711] = 10;
  EXPECT_TRUE(contains(with_first("data_batch_1.bin", bad), "record 4711"));
  bad[kCifar10Record * 4711] = static_cast<char>(255);
  EXPECT_TRUE(contains(with_first("data_batch_1.bin", bad), "label 255, must be 0 to 9"));
  EXPECT_TRUE(contains(with_first("data_batch_1.bin", good.substr(1)), "30729999 bytes"));
  EXPECT_TRUE(contains(with_first("data_batch_1.bin", good + "x"), "30730001 bytes"));
  EXPECT_TRUE(contains(with_first("data_batch_1.bin", ""), "0 bytes"));
  const std::string packed = gzipped(good);
  EXPECT_TRUE(contains(with_first("data_batch_1.bin.gz", packed.substr(0, packed.size() / 2)),
                       "truncated gzip"));
  EXPECT_TRUE(contains(with_first("data_batch_1.bin.gz", gzipped(good.substr(kCifar10Record))),
                       "30726927 bytes unpacked"));
  EXPECT_TRUE(contains(with_first("data_batch_1.bin.gz", gzipped(good + good)),
                       "unpacks to more than 30730000 bytes"));
}

TEST_F(Cifar10, RefusesWrongOptions) {
  EXPECT_TRUE(contains(refusal("mean: [0.5]", ErrorKind::Experiment), "needs 3 numbers"));
  EXPECT_NE(refusal("std: [1, 1, 0]", ErrorKind::Experiment), "");
  EXPECT_NE(refusal("batches: 6", ErrorKind::Experiment), "");
}

// Labels and sums were computed from the official files by another program.
TEST_F(Cifar10, ReadsTheRealFiles) {
  PIPEWRIGHT_NEEDS_REAL_DATA("cifar-10-batches-bin");
  const auto data =
      make_dataset("cifar10", "{root: '" + fixtures::real_data("cifar-10-batches-bin").string() +
                                  "', batches: 1, mean: [0, 0, 0], std: [1, 1, 1]}");
  data->open({});
  struct Known {
    Split split;
    std::vector<std::int64_t> first_labels;
    std::int64_t label_sum;
    std::int64_t pixel_sum;
    std::array<std::int64_t, 3> first_image;  // sums of its red, green and blue plane
  };
  for (const Known& known : {Known{Split::Train,
                                   {6, 9, 9, 4, 1, 1, 2, 7, 8, 3},
                                   44983,
                                   3718380578,
                                   {144594, 107622, 65574}},
                             Known{Split::Test,
                                   {3, 8, 8, 0, 6, 6, 1, 6, 3, 1},
                                   45000,
                                   3733375634,
                                   {112665, 113426, 106871}}}) {
    std::vector<std::int64_t> labels;
    std::int64_t sum = 0;
    std::array<std::int64_t, 3> first_image{};
    for (std::int64_t begin = 0; begin < 10'000; begin += 1000) {
      std::vector<std::int64_t> indices = first_indices(1000);
      for (std::int64_t& index : indices) index += begin;
      const Batch batch = data->batch(known.split, indices, nullptr);
      const auto x = values_of<float>(batch.x[0]);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::int64_t pixel = std::lround(x[i] * 255.0f);
        sum += pixel;
        if (begin == 0 && i < 3072) first_image[i / 1024] += pixel;
      }
      const auto y = values_of<std::int64_t>(batch.y);
      labels.insert(labels.end(), y.begin(), y.end());
    }
    EXPECT_EQ(std::vector(labels.begin(), labels.begin() + 10), known.first_labels);
    EXPECT_EQ(std::accumulate(labels.begin(), labels.end(), std::int64_t{0}), known.label_sum);
    EXPECT_EQ(sum, known.pixel_sum);
    EXPECT_EQ(first_image, known.first_image);
  }
}

}  // namespace
}  // namespace pipewright
