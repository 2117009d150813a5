// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/datasets/tar_fixture.h"

namespace pipewright {
namespace {

constexpr std::size_t kRecord = 3074;

/// Record i has coarse label i mod 20, fine label i mod 100 and pixels of value i + first.
std::string made_up_file(std::size_t records, std::size_t first) {
  std::string file;
  for (std::size_t i = 0; i < records; ++i) {
    file += static_cast<char>(i % 20);
    file += static_cast<char>(i % 100);
    file.append(kRecord - 2, static_cast<char>((i + first) % 256));
  }
  return file;
}

class Cifar100 : public DatasetFiles {
 protected:
  Cifar100() : DatasetFiles("cifar100") {}
};

TEST_F(Cifar100, HasFineAndCoarseLabels) {
  put(folder_ / "train.bin", made_up_file(130, 1));
  put(folder_ / "test.bin.gz", gzipped(made_up_file(30, 2)));
  const std::vector<std::int64_t> indices{129, 25};
  const auto fine = opened();
  EXPECT_EQ(fine->classes(), 100);
  EXPECT_EQ(fine->size(Split::Train), 130);
  EXPECT_EQ(fine->size(Split::Test), 30);
  EXPECT_EQ(values_of<std::int64_t>(fine->batch(Split::Train, indices, nullptr).y),
            (std::vector<std::int64_t>{29, 25}));
  const auto coarse = opened("labels: coarse, mean: [0, 0, 0], std: [1, 1, 1]");
  EXPECT_EQ(coarse->classes(), 20);
  const Batch batch = coarse->batch(Split::Train, indices, nullptr);
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{9, 5}));
  EXPECT_EQ(values_of<float>(batch.x[0])[0], 130.0f / 255.0f);
}

TEST_F(Cifar100, IsReadFromItsArchive) {
  const std::string archive =
      gzipped(tar_member("cifar-100-binary/", "", '5') +
              tar_member("cifar-100-binary/fine_label_names.txt", "apple\n") +
              tar_member("cifar-100-binary/train.bin", made_up_file(3, 1)) +
              tar_member("cifar-100-binary/test.bin", made_up_file(2, 9)) + tar_end());
  put(folder_ / "cifar-100-binary.tar.gz", archive);
  EXPECT_EQ(opened()->size(Split::Train), 3);
  EXPECT_EQ(opened("", "/cifar-100-binary.tar.gz")->size(Split::Test), 2);
  put(folder_ / "cifar-100-binary.tar.gz", archive.substr(0, archive.size() - 9));
  EXPECT_TRUE(contains(refusal(), "cifar-100-binary.tar.gz"));
  std::string bad = made_up_file(3, 1);
  bad[kRecord * 2 + 1] = 100;
  put(folder_ / "cifar-100-binary.tar.gz",
      tar_member("cifar-100-binary/train.bin", bad) +
          tar_member("cifar-100-binary/test.bin", made_up_file(2, 9)) + tar_end());
  EXPECT_TRUE(contains(refusal(), "cifar-100-binary.tar.gz/train.bin: record 2 "));
  put(folder_ / "cifar-100-binary.tar.gz",
      tar_member("cifar-100-binary/train.bin", made_up_file(1, 1)) + tar_end());
  EXPECT_TRUE(contains(refusal(), "cifar-100-binary.tar.gz/test.bin: no such file"));
}

TEST_F(Cifar100, NamesFileAndRecordOfWhatIsDamaged) {
  const std::string good = made_up_file(50, 0);
  put(folder_ / "test.bin", good);
  const auto with = [&](const std::string& content) {
    put(folder_ / "train.bin", content);
    const std::string error = refusal();
    EXPECT_TRUE(contains(error, "train.bin"));
    return error;
  };
  std::string bad = good;
  bad[kRecord * 47 + 1] = 100;
  EXPECT_TRUE(contains(with(bad), "record 47 (counted from 0) has label 100, must be 0 to 99"));
  EXPECT_TRUE(contains(with(good.substr(1)), "no whole number of records of 3074 bytes"));
  EXPECT_TRUE(contains(with(""), "has 0 bytes"));
  std::filesystem::remove(folder_ / "train.bin");
  const std::string error = refusal();
  EXPECT_TRUE(contains(error, "train.bin.gz or cifar-100-binary.tar.gz"));
  EXPECT_TRUE(contains(error, "03b5dce01913d631647c71ecec9e9cb8"));
  EXPECT_NE(refusal("labels: both", ErrorKind::Experiment), "");
}

struct Known {
  Split split;
  std::vector<std::int64_t> fine, coarse;
  std::int64_t fine_sum, coarse_sum, pixel_sum;
  std::array<std::int64_t, 3> first_image, first_at_224;  // sums of red, green and blue
};

std::array<std::int64_t, 3> sums_of_first(const Batch& batch) {
  const auto x = values_of<float>(batch.x[0]);
  const auto plane = static_cast<std::size_t>(batch.x[0].size(2) * batch.x[0].size(3));
  std::array<std::int64_t, 3> sums{};
  for (std::size_t i = 0; i < 3 * plane; ++i) sums[i / plane] += std::lround(x[i] * 255.0f);
  return sums;
}

// Computed from the same files by NumPy and Pillow 12.3 (resize to 256, middle 224).
TEST(Cifar100Files, AreReadAsByAnotherProgram) {
  PIPEWRIGHT_NEEDS_REAL_DATA("cifar-100-binary");
  const std::string plain = "{root: '" + fixtures::real_data("cifar-100-binary").string() +
                            "', mean: [0, 0, 0], std: [1, 1, 1]";
  const auto fine = make_dataset("cifar100", plain + "}");
  const auto coarse = make_dataset("cifar100", plain + ", labels: coarse}");
  const auto large = make_dataset("cifar100", plain + ", size: 224}");
  for (const auto* data : {&fine, &coarse, &large}) (*data)->open({});
  for (const Known& known : {Known{Split::Train,
                                   {51, 60, 52, 18, 40, 18, 28, 59, 79, 92},
                                   {4, 10, 17, 7, 5, 7, 3, 17, 13, 2},
                                   99000,
                                   19000,
                                   743654361,
                                   {132355, 126382, 119609},
                                   {6913522, 6530873, 6117659}},
                             Known{Split::Test,
                                   {12, 85, 12, 2, 2, 23, 31, 36, 48, 54},
                                   {9, 19, 9, 14, 14, 10, 11, 16, 18, 2},
                                   49500,
                                   9500,
                                   376474617,
                                   {69407, 87448, 99325},
                                   {3377779, 4311271, 4944605}}}) {
    const auto indices = first_indices(fine->size(known.split));
    const Batch batch = fine->batch(known.split, indices, nullptr);
    const auto labels = values_of<std::int64_t>(batch.y);
    const auto others = values_of<std::int64_t>(coarse->batch(known.split, indices, nullptr).y);
    EXPECT_EQ(std::vector(labels.begin(), labels.begin() + 10), known.fine);
    EXPECT_EQ(std::vector(others.begin(), others.begin() + 10), known.coarse);
    EXPECT_EQ(std::accumulate(labels.begin(), labels.end(), std::int64_t{0}), known.fine_sum);
    EXPECT_EQ(std::accumulate(others.begin(), others.end(), std::int64_t{0}), known.coarse_sum);
    std::int64_t sum = 0;
    for (const float pixel : values_of<float>(batch.x[0])) sum += std::lround(pixel * 255.0f);
    EXPECT_EQ(sum, known.pixel_sum);
    EXPECT_EQ(sums_of_first(batch), known.first_image);
    EXPECT_EQ(sums_of_first(large->batch(known.split, first_indices(1), nullptr)),
              known.first_at_224);
  }
}

}  // namespace
}  // namespace pipewright
