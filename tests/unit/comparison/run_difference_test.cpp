// SPDX-License-Identifier: Apache-2.0
#include "core/comparison/run_difference.h"

#include <cmath>
#include <limits>

#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class RunDifference : public RunFolders {
 protected:
  void steps(const std::string& run, const std::string& rows) const {
    put(run + "/steps.csv", "epoch,minibatch,loss\n" + rows);
  }
  using Tensors = std::vector<std::pair<std::string, at::Tensor>>;
  void tensors(const std::string& file, const Tensors& all) const {
    put(file, "");
    write_safetensors(root_ / file, {.tensors = all, .metadata = {}});
  }
  std::vector<TensorDifference> of_tensors() const {
    return tensor_differences(root_ / "a", root_ / "b");
  }
};

TEST_F(RunDifference, TheFirstRowWithAnotherLossIsNamed) {
  steps("a", "0,0,2.5\n0,1,2.25\n1,0,2\n1,1,1\n");
  steps("b", "0,0,2.5\n0,1,2.25\n1,0,2.125\n1,1,1\n1,2,0.5\n");
  const auto difference = loss_difference(root_ / "a", root_ / "b");
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->differing, 1u) << "rows that one lacks do not differ";
  EXPECT_EQ(loss_difference_text(*difference),
            "losses      differ in 1 of 4 mini-batches, first in mini-batch 0 of epoch 1 (counted "
            "from 0): loss 2 and 2.125; the first trained 4 mini-batches, the second 5\n");
}

TEST_F(RunDifference, InShortLossesDifferFromARowOnOnlyIfAllThatFollowDo) {
  const auto in_short = [&](const std::string& rows_a, const std::string& rows_b) {
    steps("a", rows_a);
    steps("b", rows_b);
    return losses_in_short(*loss_difference(root_ / "a", root_ / "b"));
  };
  EXPECT_EQ(in_short("0,0,2\n0,1,2\n1,0,2\n", "0,0,2\n0,1,3\n1,0,3\n"),
            "losses differ from mini-batch 1 of epoch 0 (counted from 0) on");
  EXPECT_EQ(
      in_short("0,0,2\n0,1,2\n1,0,2\n", "0,0,2\n0,1,3\n1,0,2\n"),
      "losses differ in 1 of 3 mini-batches, first in mini-batch 1 of epoch 0 (counted from 0)");
  EXPECT_EQ(in_short("0,0,2\n0,1,2\n1,0,2\n", "0,0,2\n0,1,3\n"),
            "losses differ from mini-batch 1 of epoch 0 (counted from 0) on")
      << "as far as both have trained";
  EXPECT_EQ(in_short("0,0,2\n0,1,2\n", "0,0,2\n0,1,2\n"), "losses are equal");
  EXPECT_EQ(in_short("0,0,2\n0,1,2\n", "0,0,2\n0,1,2\n1,0,2\n"),
            "losses are equal in the 2 mini-batches that both have trained");
  EXPECT_EQ(in_short("0,0,2\n", ""), "no mini-batch is in both");
}

TEST_F(RunDifference, LossesThatAreNotFiniteAreCountedAndNaNEqualsNaN) {
  steps("a", "0,0,2.5\n0,1,nan\n");
  steps("b", "0,0,2.5\n0,1,nan\n0,2,inf\n");
  EXPECT_EQ(loss_difference_text(*loss_difference(root_ / "a", root_ / "b")),
            "losses      equal in 2 mini-batches; the first trained 2 mini-batches, the second 3; "
            "the loss is not finite in 1 mini-batch of the first and 2 of the second\n");
  steps("a", "");
  EXPECT_EQ(loss_difference_text(*loss_difference(root_ / "a", root_ / "b")),
            "losses      not compared: no mini-batch is in both; the first trained 0 mini-batches, "
            "the second 3; the loss is not finite in 0 mini-batches of the first and 2 of the "
            "second\n");
}

TEST_F(RunDifference, ColumnsThatOneLacksAreLeftOut) {
  steps("a", "0,0,2.5\n");
  put("b/steps.csv", "epoch,minibatch,loss,loss_0\n0,0,2.5,3\n");
  EXPECT_EQ(loss_difference(root_ / "a", root_ / "b")->differing, 0u);
  EXPECT_EQ(loss_difference(root_ / "b", root_ / "a")->differing, 0u);
  EXPECT_FALSE(loss_difference(root_ / "a", root_ / "none"));
  put("c/steps.csv", "epoch,minibatch,loss\n0,0\n");
  try {
    loss_difference(root_ / "a", root_ / "c");
    FAIL() << "a row without a loss is refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_NE(std::string(error.what()).find("steps.csv:2:1: has 2 fields, but the header has 3"),
              std::string::npos);
  }
}

TEST_F(RunDifference, TheFirstTensorWithOtherBytesIsNamed) {
  const at::Tensor ones = at::ones({2, 2}), moved = ones + 0.25;
  tensors("a/final.safetensors", {{"x", ones}, {"y", ones}, {"z", ones}, {"only", ones}});
  tensors("b/final.safetensors", {{"z", moved}, {"y", moved}, {"x", ones}});
  const auto differences = of_tensors();
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(tensor_difference_text(differences[0]),
            "tensors     at the end: 2 of 3 differ, first y, by at most 0.25; only the first has "
            "only\n");
}

TEST_F(RunDifference, ATensorOfAnotherShapeDiffersInShape) {
  tensors("a/final.safetensors", {{"x", at::ones({4, 2})}});
  tensors("b/final.safetensors", {{"x", at::ones({4, 3})}});
  EXPECT_EQ(of_tensors().at(0).how, "in shape: [4, 2] and [4, 3]");
}

TEST_F(RunDifference, ATensorOfAnotherTypeDiffersInType) {
  const at::Tensor values = at::tensor({1.0, 0.5, 3.0}), third = at::tensor({1.0 / 3});
  tensors("a/final.safetensors", {{"x", values.to(at::kFloat)}});
  tensors("b/final.safetensors", {{"x", values.to(at::kBFloat16)}});
  EXPECT_EQ(of_tensors().at(0).how, "in type: float32 and bfloat16, with equal values");
  tensors("b/final.safetensors", {{"x", (values + 0.25).to(at::kDouble)}});
  EXPECT_EQ(of_tensors().at(0).how, "in type: float32 and float64, by at most 0.25");
  tensors("b/final.safetensors", {{"x", third.to(at::kDouble)}});
  EXPECT_EQ(of_tensors().at(0).how, "in type: float32 and float64, in shape: [3] and [1]");
}

TEST_F(RunDifference, ValuesThatAreNotFiniteAreCountedAndNoDistance) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const auto of = [&](const std::vector<double>& a, const std::vector<double>& b) {
    tensors("a/final.safetensors", {{"x", at::tensor(a)}});
    tensors("b/final.safetensors", {{"x", at::tensor(b)}});
    return tensor_difference_text(of_tensors().at(0));
  };
  EXPECT_EQ(of({1, nan, inf, 2}, {1.5, nan, -inf, 2}),
            "tensors     at the end: 1 of 1 differ, first x, by at most 0.5 where both are finite; "
            "2 values of the first and 2 of the second are not finite\n");
  EXPECT_EQ(of({1, nan}, {1, nan}),
            "tensors     at the end: equal in all 1 that both have; 1 value of the first and 1 of "
            "the second are not finite\n");
  EXPECT_EQ(
      of({1, inf}, {1, nan}),
      "tensors     at the end: 1 of 1 differ, first x, in values that are not finite; 1 value "
      "of the first and 1 of the second are not finite\n");
  EXPECT_EQ(of({1, 2}, {nan, nan}),
            "tensors     at the end: 1 of 1 differ, first x, in values of which none is finite in "
            "both; 0 values of the first and 2 of the second are not finite\n");
  EXPECT_EQ(of({0.0, 1}, {-0.0, 1}),
            "tensors     at the end: 1 of 1 differ, first x, in the signs of zeros\n");
}

TEST_F(RunDifference, CheckpointsAfterEqualNumbersOfMiniBatchesAreComparedHoweverTheyAreCut) {
  const at::Tensor ones = at::ones({2});
  tensors("a/checkpoint/000004/stage-0.safetensors", {{"x", ones}, {"y", ones}});
  tensors("b/checkpoint/000004/stage-0.safetensors", {{"x", ones}});
  tensors("b/checkpoint/000004/stage-1.safetensors", {{"y", ones}});
  tensors("a/checkpoint/000008/stage-0.safetensors", {{"x", ones}, {"y", ones}});
  tensors("b/checkpoint/000008/stage-0.safetensors", {{"x", ones}});
  tensors("b/checkpoint/000008/stage-1.safetensors", {{"y", ones * 2}});
  tensors("b/checkpoint/000012/stage-0.safetensors", {{"x", ones}});
  const auto differences = of_tensors();
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(tensor_difference_text(differences[0]),
            "tensors     after 4 mini-batches: equal in all 2 that both have\n");
  EXPECT_EQ(differences[1].when, "after 8 mini-batches");
  EXPECT_EQ(differences[1].first, "y");
}

}  // namespace
}  // namespace pipewright
