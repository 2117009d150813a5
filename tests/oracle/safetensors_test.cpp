// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace oracle {
namespace {

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / (name + std::to_string(getpid()));
}

TEST(Safetensors, ComeBackAsWritten) {
  const auto path = temporary("oracle_safetensors_");
  const std::vector<NamedTensor> tensors{{"b.x", {2, 2}, {1, -0.5, 1e300, 0.1}},
                                         {"a.y", {3}, {0, 7, 2}, true}};
  write_safetensors(path, tensors);
  const auto read = read_safetensors(path);
  ASSERT_EQ(read.size(), 2u);
  for (const NamedTensor& tensor : tensors) {
    EXPECT_EQ(read.at(tensor.name).shape, tensor.shape);
    EXPECT_EQ(read.at(tensor.name).values, tensor.values);
    EXPECT_EQ(read.at(tensor.name).integers, tensor.integers);
  }
  std::filesystem::remove(path);
}

TEST(Safetensors, CutShortAreRefused) {
  const auto path = temporary("oracle_safetensors_cut_");
  write_safetensors(path, std::vector<NamedTensor>{{"x", {4}, {1, 2, 3, 4}}});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  EXPECT_THROW(read_safetensors(path), std::runtime_error);
  std::filesystem::remove(path);
  EXPECT_THROW(read_safetensors(path), std::runtime_error);
}

}  // namespace
}  // namespace oracle
