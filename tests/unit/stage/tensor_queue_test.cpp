// SPDX-License-Identifier: Apache-2.0
// The queue in which a disturbed training keeps gradients and statistics, and what a checkpoint
// takes of it.
#include "core/stage/tensor_queue.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

using List = TensorQueue::List;

TensorQueue queue_of_two(std::size_t longest = 3) {
  return TensorQueue("gradient", {{"a", {2}}, {"b", {1, 2}}}, at::kDouble, longest);
}

List list(double a, double b) {
  return {at::full({2}, a, at::kDouble), at::full({1, 2}, b, at::kDouble)};
}

/// The numbers at the front of the queue's lists, which it loses; −1 for what is not there.
std::vector<std::vector<double>> drained(TensorQueue& queue) {
  std::vector<std::vector<double>> all;
  while (queue.size() > 0) {
    const std::optional<List> oldest = queue.pop();
    std::vector<double>& numbers = all.emplace_back();
    for (std::size_t i = 0; i < 2; ++i) {
      const bool there = oldest && (*oldest)[i].defined();
      numbers.push_back(there ? (*oldest)[i].flatten()[0].item<double>() : -1);
    }
  }
  return all;
}

std::string refusal(TensorQueue queue, const NamedTensors& saved) {
  try {
    queue.restore(saved);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    return error.message();
  }
  return "nothing is refused";
}

TEST(TensorQueue, GivesListsInTheirOrderAndKeepsCopies) {
  TensorQueue queue = queue_of_two();
  List first = list(1, 2);
  queue.push(first);
  first[0].fill_(9);
  queue.push({});
  queue.push(list(5, 6));
  EXPECT_EQ(queue.lists(), 2);
  const std::vector<std::vector<double>> expected{{1, 2}, {-1, -1}, {5, 6}};
  EXPECT_EQ(drained(queue), expected);
}

TEST(TensorQueue, IsRestoredWithItsGaps) {
  TensorQueue queue = queue_of_two(), restored = queue_of_two();
  queue.push(list(1, 2));
  queue.push({});
  List half = list(5, 6);
  half[0] = at::Tensor();
  queue.push(half);
  restored.restore(queue.state());
  EXPECT_EQ(restored.missing(), "gradient/a");
  EXPECT_EQ(drained(restored), drained(queue));
}

/// As under another cut, where the layers of a stage come from the files of two.
TEST(TensorQueue, IsRestoredInParts) {
  TensorQueue first("gradient", {{"a", {2}}}, at::kDouble, 3),
      second("gradient", {{"b", {1, 2}}, {"c", {1}}}, at::kDouble, 3), whole = queue_of_two();
  for (const double number : {1, 2}) {
    first.push(List{list(number, 0)[0]});
    second.push(List{list(0, number + 10)[1], at::ones({1}, at::kDouble)});
  }
  whole.restore(first.state());
  EXPECT_EQ(whole.missing(), "gradient/b");
  whole.restore(second.state());
  EXPECT_EQ(whole.missing(), "");
  const std::vector<std::vector<double>> expected{{1, 11}, {2, 12}};
  EXPECT_EQ(drained(whole), expected);
}

TEST(TensorQueue, RefusesWhatDoesNotFit) {
  TensorQueue queue = queue_of_two();
  for (int i = 0; i < 3; ++i) queue.push(list(i, i));
  const auto changed = [&](const std::string& name, const at::Tensor& tensor) {
    NamedTensors saved = queue.state();
    for (auto& [each, value] : saved)
      if (each == name) value = tensor;
    return refusal(queue_of_two(), saved);
  };
  EXPECT_EQ(refusal(queue_of_two(2), queue.state()),
            "tensor 'gradient.lists' has 3 places; expected at most 2");
  EXPECT_EQ(changed("gradient/a", at::zeros({3, 3}, at::kDouble)),
            "tensor 'gradient/a' has shape [3, 3]; this experiment's has [3, 2]");
  EXPECT_EQ(changed("gradient.places/a", at::tensor({0, 1, 3}, at::kLong)),
            "tensor 'gradient.places/a' has 3; expected the number of a place with a list");
  EXPECT_EQ(changed("gradient.places/a", at::tensor({0, 1, -1}, at::kLong)),
            "tensor 'gradient.places/a' has -1; expected the number of a place with a list");
  EXPECT_EQ(changed("gradient.lists", at::ones({3}, at::kFloat)),
            "tensor 'gradient.lists' is no list of whole numbers");
}

}  // namespace
}  // namespace pipewright::test
