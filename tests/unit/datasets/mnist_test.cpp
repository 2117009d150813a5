// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

// What is damaged and how that is told is in fashion_mnist_test.cpp: both are read alike.
TEST(Mnist, IsReadNormalisedAndNeverMirroredUnlessAskedFor) {
  const TemporaryFolder folder;
  const auto dataset = [&](const std::string& more) {
    return make_dataset("mnist", "{root: '" + folder.text() + "'" + more + "}");
  };
  const std::string missing = error_of([&] { dataset("")->open({}); });
  EXPECT_TRUE(contains(missing, (folder / "train-images-idx3-ubyte").string()));
  EXPECT_TRUE(contains(missing, "MNIST (train-images-idx3-ubyte.gz, md5 f68b3c2dcbeaaa9fbdd348bb"));
  put(folder / "train-images-idx3-ubyte", idx({2051, 60000, 28, 28}, 60000 * 784));
  put(folder / "train-labels-idx1-ubyte", idx({2049, 60000}, 60000));
  put(folder / "t10k-images-idx3-ubyte", idx({2051, 10000, 28, 28}, 10000 * 784));
  put(folder / "t10k-labels-idx1-ubyte", idx({2049, 10000}, 10000));

  const auto data = dataset("");
  data->open({});
  EXPECT_EQ(data->size(Split::Train), 60'000);
  EXPECT_EQ(data->size(Split::Test), 10'000);
  const Batch batch = data->batch(Split::Test, first_indices(2), nullptr);
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(values_of<float>(batch.x[0])[7], (7 / 255.0f - 0.1307f) / 0.3081f);

  const auto augmented = dataset(", augment: true");
  augmented->open({});
  const RandomStream stream(1, "augment");
  const auto x = values_of<float>(augmented->batch(Split::Train, first_indices(30), &stream).x[0]);
  for (std::size_t i = 0; i < 30; ++i) {  // inside, pixels grow by 1 from left to right, mod 10
    const float* row = x.data() + i * 784 + 14 * 28;
    EXPECT_TRUE(row[11] - row[10] > 0 || row[12] - row[11] > 0) << i;
    EXPECT_TRUE(row[11] - row[10] < 0.02f && row[12] - row[11] < 0.02f) << i;
  }
}

}  // namespace
}  // namespace pipewright
