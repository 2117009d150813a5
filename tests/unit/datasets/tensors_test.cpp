// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "core/stage/files/safetensors.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

using fixtures::contains;
using fixtures::error_of;
using fixtures::make_dataset;
using fixtures::values_of;

class TensorsDataset : public ::testing::Test {
 protected:
  TensorsDataset() {
    tensors_["train.x"] = at::arange(24, at::kDouble).reshape({4, 2, 3});
    tensors_["train.y"] = at::tensor({2, 0, 1, 2}, at::kLong);
    tensors_["test.x"] = -at::arange(12, at::kDouble).reshape({2, 2, 3});
    tensors_["test.y"] = at::tensor({0, 6}, at::kLong);
  }
  std::unique_ptr<Dataset> opened() {
    TensorFile file;
    for (const auto& [name, tensor] : tensors_) file.tensors.emplace_back(name, tensor);
    write_safetensors(folder_ / "data.safetensors", file);
    auto dataset =
        make_dataset("tensors", "{file: '" + (folder_ / "data.safetensors").string() + "'}");
    dataset->open({});
    return dataset;
  }
  std::string refusal_with(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor before = tensors_[name];
    tensors_[name] = tensor;
    const std::string error = error_of([this] { opened(); });
    EXPECT_TRUE(contains(error, "data.safetensors"));
    EXPECT_TRUE(contains(error, "'" + name + "'"));
    tensors_[name] = before;
    return error;
  }

  fixtures::TemporaryFolder folder_;
  std::map<std::string, at::Tensor> tensors_;
};

TEST_F(TensorsDataset, GivesTheSamplesAskedForInTheFilesPrecision) {
  const auto data = opened();
  EXPECT_EQ(data->size(Split::Train), 4);
  EXPECT_EQ(data->size(Split::Test), 2);
  EXPECT_EQ(data->sample_shape(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(data->classes(), 7) << "the highest label of either split, and one";
  const std::vector<std::int64_t> indices{3, 1, 3};
  const Batch batch = data->batch(Split::Train, indices, nullptr);
  EXPECT_EQ(batch.x[0].scalar_type(), at::kDouble);
  EXPECT_TRUE(
      batch.x[0].equal(tensors_["train.x"].index_select(0, at::tensor({3, 1, 3}, at::kLong))));
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{2, 0, 2}));
  EXPECT_TRUE(data->batch(Split::Test, std::vector<std::int64_t>{1}, nullptr)
                  .x[0]
                  .equal(tensors_["test.x"].slice(0, 1)));
}

TEST_F(TensorsDataset, TakesSamplesOfOneNumberAndOtherPrecisions) {
  tensors_["train.x"] = at::arange(4, at::kFloat);
  tensors_["test.x"] = at::arange(2, at::kHalf);
  const auto data = opened();
  EXPECT_TRUE(data->sample_shape().empty());
  const std::vector<std::int64_t> indices{1, 0};
  EXPECT_EQ(data->batch(Split::Train, indices, nullptr).x[0].scalar_type(), at::kFloat);
  EXPECT_EQ(data->batch(Split::Test, indices, nullptr).x[0].scalar_type(), at::kHalf);
}

TEST_F(TensorsDataset, TakesLabelsOfEveryIntegerType) {
  for (const at::ScalarType type : {at::kInt, at::kShort, at::kChar, at::kByte}) {
    tensors_["train.y"] = at::tensor({2, 0, 1, 2}, type);
    const std::vector<std::int64_t> indices{0, 1, 2, 3};
    const Batch batch = opened()->batch(Split::Train, indices, nullptr);
    EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{2, 0, 1, 2}));
  }
}

TEST_F(TensorsDataset, NamesTheTensorAndRecordAtFault) {
  EXPECT_TRUE(contains(refusal_with("train.y", at::tensor({2, 0, -1, 2}, at::kInt)), "record 2"));
  EXPECT_TRUE(
      contains(refusal_with("train.y", at::tensor({2, 0, 1}, at::kLong)), "[3], must be [4]"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::zeros({4, 1}, at::kLong)), "must be [4]"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::zeros({4})), "must be integers"));
  EXPECT_TRUE(contains(refusal_with("test.x", at::zeros({2, 2, 3}, at::kInt)), "must be floating"));
  EXPECT_TRUE(contains(refusal_with("test.x", at::zeros({2, 3, 2})), "[3, 2], train.x of [2, 3]"));
  EXPECT_TRUE(contains(refusal_with("train.x", at::zeros({0, 2, 3})), "must be [samples, ...]"));
  EXPECT_TRUE(contains(refusal_with("train.x", at::zeros({})), "must be [samples, ...]"));
  for (const std::string name : {"train.x", "train.y", "test.x", "test.y"}) {
    const at::Tensor before = tensors_.extract(name).mapped();
    EXPECT_TRUE(contains(error_of([this] { opened(); }), "no tensor '" + name + "'"));
    tensors_[name] = before;
  }
}

TEST_F(TensorsDataset, TakesTokensWithALabelOrATargetForEach) {
  tensors_["train.x"] = at::arange(12, at::kLong).reshape({4, 3});
  tensors_["test.x"] = at::tensor({3, 1, 14, 0, 0, 7}, at::kLong).reshape({2, 3});
  const auto labelled = opened();
  EXPECT_EQ(labelled->task(), Task::Classify);
  EXPECT_EQ(labelled->vocabulary(), 15) << "the highest token of either split, and one";
  EXPECT_EQ(labelled->sample_shape(), (std::vector<std::int64_t>{3}));
  tensors_["train.y"] = at::arange(12, at::kInt).reshape({4, 3});
  tensors_["train.y"][1][2] = kNoTarget;
  tensors_["test.y"] = at::zeros({2, 3}, at::kLong);
  const auto continued = opened();
  EXPECT_EQ(continued->task(), Task::Continue);
  EXPECT_EQ(continued->classes(), 12);
  const Batch batch = continued->batch(Split::Train, std::vector<std::int64_t>{1, 0}, nullptr);
  EXPECT_EQ(values_of<std::int64_t>(batch.x[0]), (std::vector<std::int64_t>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values_of<std::int64_t>(batch.y),
            (std::vector<std::int64_t>{3, 4, kNoTarget, 0, 1, 2}));
}

TEST_F(TensorsDataset, RefusesTokensThatAreNone) {
  tensors_["train.x"] = at::zeros({4, 3}, at::kLong);
  tensors_["test.x"] = at::zeros({2, 3}, at::kLong);
  at::Tensor negative = at::zeros({4, 3}, at::kLong);
  negative[2][1] = -1;
  EXPECT_TRUE(contains(refusal_with("train.x", negative), "record 2"));
  EXPECT_TRUE(contains(refusal_with("train.x", at::zeros({4, 2, 3}, at::kLong)),
                       "must be [samples, tokens]"));
  EXPECT_TRUE(contains(refusal_with("test.x", at::zeros({2, 3})), "if and only if train.x is"));
  EXPECT_TRUE(
      contains(refusal_with("train.y", at::zeros({4, 2}, at::kLong)), "or one for each token"));
  EXPECT_TRUE(
      contains(refusal_with("test.y", at::zeros({2, 3}, at::kLong)), "if and only if train.y has"));
  EXPECT_TRUE(contains(refusal_with("train.y", at::full({4, 3}, -1, at::kLong)), "record 0"));
}

TEST_F(TensorsDataset, NeedsAFile) {
  EXPECT_TRUE(contains(error_of([] { make_dataset("tensors", "{}"); }, ErrorKind::Experiment),
                       "dataset.file"));
  const auto absent = make_dataset("tensors", "{file: '" + folder_.text() + "/absent'}");
  EXPECT_TRUE(contains(error_of([&] { absent->open({}); }), "absent"));
}

}  // namespace
}  // namespace pipewright
