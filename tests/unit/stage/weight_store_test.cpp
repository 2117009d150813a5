// SPDX-License-Identifier: Apache-2.0
// The versions of one stage's parameters: what shares memory with what, and for how long.
#include "core/stage/weight_store.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

FlatLayout small_layout(std::int64_t bytes = 4) {
  return flat_layout({{"a", {3, 5}}, {"b", {}}, {"c", {16}}}, bytes);
}

std::uintptr_t address(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
}

TEST(FlatLayout, StartsEachParameterOn64Bytes) {
  const FlatLayout floats = small_layout(4), doubles = small_layout(8);
  EXPECT_EQ(floats.entries[1].offset, 16);
  EXPECT_EQ(floats.entries[2].offset, 32);
  EXPECT_EQ(floats.size, 48);
  EXPECT_EQ(doubles.entries[1].offset, 16);
  EXPECT_EQ(doubles.entries[2].offset, 24);
  EXPECT_EQ(floats.entries[1].size, 1) << "a scalar";
}

TEST(WeightStore, AlignsLeavesOfEveryVersion) {
  WeightStore store(small_layout(), at::kFloat);
  for (int update = 0; update < 3; ++update) {
    store.install({update, 0, 0});
    for (const at::Tensor& leaf : store.leaves()) EXPECT_EQ(address(leaf) % 64, 0u);
    store.advance(false);
  }
}

TEST(WeightStore, InstallsAVersionWithoutCopying) {
  WeightStore store(small_layout(), at::kFloat);
  const std::vector<at::Tensor> leaves(store.leaves().begin(), store.leaves().end());
  const WeightStore::Advance made = store.advance(false);
  made.to.fill_(2);
  for (const WeightKey& key : {WeightKey{1, 0, 0}, WeightKey{0, 0, 0}, WeightKey{1, 0, 0}}) {
    store.install(key);
    const auto start = address(store.version(key));
    EXPECT_EQ(address(leaves[0]), start);
    EXPECT_EQ(address(leaves[2]), start + 32 * sizeof(float));
    EXPECT_EQ(leaves[2].max().item<float>(), key.version == 1 ? 2 : 0);
  }
}

TEST(WeightStore, LeavesRequireGradAndSeeWhatIsWrittenLater) {
  WeightStore store(small_layout(), at::kFloat);
  store.latest().fill_(3);
  for (const at::Tensor& leaf : store.leaves()) {
    EXPECT_TRUE(leaf.requires_grad());
    EXPECT_TRUE(leaf.is_leaf());
    EXPECT_EQ(leaf.max().item<float>(), 3);
  }
}

TEST(WeightStore, AdvancesInPlaceWithoutANewCopy) {
  WeightStore store(small_layout(), at::kFloat);
  const auto before = address(store.latest());
  const WeightStore::Advance advance = store.advance(true);
  EXPECT_EQ(address(advance.from), before);
  EXPECT_EQ(address(advance.to), before);
  EXPECT_EQ(store.latest_number(), 1);
  EXPECT_EQ(address(store.version({1, 0, 0})), before);
  EXPECT_THROW(store.version({0, 0, 0}), Error);
  EXPECT_EQ(store.most_copies(), 1);
}

TEST(WeightStore, AdvancesIntoACopyThatLeavesTheOldVersionAlone) {
  WeightStore store(small_layout(), at::kFloat);
  store.latest().fill_(1);
  const WeightStore::Advance advance = store.advance(false);
  EXPECT_NE(address(advance.to), address(advance.from));
  advance.to.fill_(2);
  EXPECT_EQ(store.version({0, 0, 0}).max().item<float>(), 1);
  EXPECT_EQ(store.latest().min().item<float>(), 2);
}

TEST(WeightStore, KeepsVersionsAndPredictionsUntilTheyAreFreed) {
  WeightStore store(small_layout(), at::kFloat);
  store.add_prediction({0, 3, 0}).fill_(7);
  store.advance(true);
  EXPECT_EQ(store.version({0, 3, 0}).max().item<float>(), 7);
  EXPECT_EQ(store.copies(), 2);
  store.free({0, 3, 0});
  EXPECT_THROW(store.install({0, 3, 0}), Error);
  EXPECT_EQ(store.copies(), 1);
}

TEST(WeightStore, TellsPredictionsApartByStepsAndRule) {
  WeightStore store(small_layout(), at::kFloat);
  store.add_prediction({0, 1, 0}).fill_(1);
  store.add_prediction({0, 1, 1}).fill_(2);
  store.add_prediction({0, 2, 0}).fill_(3);
  EXPECT_EQ(store.version({0, 1, 1}).max().item<float>(), 2);
  EXPECT_EQ(store.version({0, 2, 0}).max().item<float>(), 3);
}

TEST(WeightStore, UsesTheMemoryOfFreedVersionsAgain) {
  WeightStore store(small_layout(), at::kFloat);
  store.advance(false);
  const auto freed = address(store.version({0, 0, 0}));
  store.free({0, 0, 0});
  EXPECT_EQ(address(store.add_prediction({1, 1, 0})), freed);
}

TEST(WeightStore, RemembersTheMostCopiesThereWere) {
  WeightStore store(small_layout(), at::kFloat);
  for (int i = 0; i < 3; ++i) store.advance(false);
  for (int i = 0; i < 3; ++i) store.free({i, 0, 0});
  store.advance(false);
  EXPECT_EQ(store.copies(), 2);
  EXPECT_EQ(store.most_copies(), 4);
}

TEST(WeightStore, HoldsZerosBetweenParametersInEveryVersion) {
  WeightStore store(small_layout(), at::kFloat);
  for (int update = 1; update <= 4; ++update) {
    store.advance(false);
    EXPECT_EQ(store.latest()[15].item<float>(), 0);
    EXPECT_EQ(store.latest()[47].item<float>(), 0);
  }
}

TEST(WeightStore, BeginsANewScheduleWithTheLatestAsVersion0) {
  WeightStore store(small_layout(), at::kFloat);
  store.advance(false).to.fill_(5);
  store.free({0, 0, 0});
  store.rewind();
  EXPECT_EQ(store.latest_number(), 0);
  EXPECT_EQ(store.version({0, 0, 0}).max().item<float>(), 5);
}

/// The allocator often gives a later version the address of a freed one, and its copy another,
/// because the room of the freed copy is taken.
TEST(WeightStore, InstallsACopyAnewInEverySchedule) {
  const FlatLayout layout = flat_layout({{"a", {1 << 12}}}, 4);
  WeightStore store(layout, at::kFloat, at::kBFloat16);
  const WeightKey ahead{0, 1, 0};
  std::vector<at::Tensor> taken;
  for (int schedule = 1; schedule <= 64; ++schedule) {
    store.add_prediction(ahead).fill_(schedule);
    store.copy(ahead);
    store.install(ahead);
    EXPECT_EQ(store.leaves()[0].max().item<float>(), schedule);
    store.free(ahead);
    store.rewind();
    taken.push_back(at::zeros({layout.size}, at::kBFloat16));
  }
}

TEST(WeightStore, RefusesToBeginWithVersionsLeftOver) {
  WeightStore store(small_layout(), at::kFloat);
  store.advance(false);
  EXPECT_THROW(store.rewind(), Error);
}

/// What the store's versions are filled with, the oldest first.
std::vector<float> values(const WeightStore& store) {
  std::vector<float> all;
  for (int before = store.earlier(); before > 0; --before)
    all.push_back(store.earlier_version(before)[0].item<float>());
  all.push_back(store.latest()[0].item<float>());
  return all;
}

/// Performs updates as a schedule does, each of which keeps the version before it.
void update(WeightStore& store, const std::vector<float>& made) {
  for (const float value : made) store.advance(false).to.fill_(value);
}

TEST(WeightStore, KeepsEarlierVersionsFromScheduleToSchedule) {
  WeightStore store(small_layout(), at::kFloat, {}, 2);
  store.latest().fill_(7);  // as if loaded
  EXPECT_FALSE(store.has_earlier());
  store.rewind();
  EXPECT_EQ(values(store), (std::vector<float>{7, 7, 7})) << "copies of the first";
  update(store, {8});
  store.rewind();
  EXPECT_EQ(values(store), (std::vector<float>{7, 7, 8}));
  EXPECT_EQ(store.version({-1, 0, 0})[0].item<float>(), 7);
  EXPECT_EQ(store.version({0, 0, 0})[0].item<float>(), 8);
  store.rewind();  // an evaluation
  EXPECT_EQ(values(store), (std::vector<float>{7, 7, 8}));
  update(store, {9, 10, 11});
  store.free({0, 0, 0});
  store.rewind();
  EXPECT_EQ(values(store), (std::vector<float>{9, 10, 11})) << "others of before are dropped";
  update(store, {12, 13, 14});
  EXPECT_THROW(store.rewind(), Error) << "version 0 should have been freed";
}

}  // namespace
}  // namespace pipewright::test
