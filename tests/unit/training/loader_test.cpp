// SPDX-License-Identifier: Apache-2.0
// Mini-batches: their order is a function of seed and epoch, their cut of the shape.
#include "core/training/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

std::vector<std::int64_t> indices(std::int64_t size) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Sample i is [i, i + ½], its label i; counts how often a mini-batch is assembled.
class Numbers final : public Dataset {
 public:
  void open(const DatasetRequest&) override {}
  std::int64_t size(Split) const override { return 1000; }
  std::vector<std::int64_t> sample_shape() const override { return {2}; }
  std::int64_t classes() const override { return 1000; }
  Batch batch(Split, std::span<const std::int64_t> of,
              const RandomStream* augmentation) const override {
    ++assembled;
    augmented = augmentation != nullptr;
    const at::Tensor y = at::tensor(at::ArrayRef<std::int64_t>(of.data(), of.size()), at::kLong);
    return {{at::stack({y, y + 0.5}, 1).to(at::kFloat)}, y};
  }
  mutable std::atomic<int> assembled = 0;
  mutable std::atomic<bool> augmented = false;
};

Loader::Settings settings(const Numbers& numbers, int replicas = 1, int microbatches = 1) {
  return {
      .dataset = &numbers, .replicas = replicas, .microbatches = microbatches, .input_shape = {2}};
}

std::vector<std::int64_t> labels(const at::Tensor& y) {
  return {y.const_data_ptr<std::int64_t>(), y.const_data_ptr<std::int64_t>() + y.numel()};
}

TEST(EpochPermutation, IsAPermutationAndAFunctionOfSeedAndEpochOnly) {
  const auto once = epoch_permutation(indices(100), true, 7, 3);
  EXPECT_EQ(once, epoch_permutation(indices(100), true, 7, 3));
  EXPECT_NE(once, epoch_permutation(indices(100), true, 8, 3));
  EXPECT_NE(once, epoch_permutation(indices(100), true, 7, 4));
  EXPECT_NE(once, indices(100));
  auto sorted = once;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, indices(100));
}

TEST(EpochPermutation, IsTheFilesOrderWithoutShuffle) {
  EXPECT_EQ(epoch_permutation(indices(9), false, 7, 3), indices(9));
}

TEST(EpochPermutation, PutsEverySampleInEveryPlaceAboutEquallyOften) {
  std::vector<int> first(4, 0);
  constexpr int kDraws = 4000;
  for (int epoch = 0; epoch < kDraws; ++epoch)
    ++first[static_cast<std::size_t>(epoch_permutation(indices(4), true, 1, epoch)[0])];
  for (const int count : first)
    EXPECT_NEAR(count, kDraws / 4, kDraws * tolerance::share_of(kDraws, 0.25));
}

TEST(EpochOrder, DropsASmallerLastMiniBatchOnRequest) {
  const EpochOrder drops{indices(10), 4, true}, keeps{indices(10), 4, false};
  EXPECT_EQ(drops.minibatches(), 2);
  EXPECT_EQ(keeps.minibatches(), 3);
  EXPECT_EQ(keeps.size_of(1), 4);
  EXPECT_EQ(keeps.size_of(2), 2);
  EXPECT_EQ((EpochOrder{indices(8), 4, false}.minibatches()), 2);
  EXPECT_EQ((EpochOrder{indices(3), 4, true}.minibatches()), 0);
}

TEST(SliceOf, DiffersByAtMostOneTheLargerFirst) {
  EXPECT_EQ(slice_of(7, 3, 0).size, 3);
  EXPECT_EQ(slice_of(7, 3, 1).begin, 3);
  EXPECT_EQ(slice_of(7, 3, 2).begin, 5);
  EXPECT_EQ(slice_of(7, 3, 2).size, 2);
}

/// Sizes of the micro-batches of torch.chunk, each begun where the one before ends.
std::vector<std::int64_t> chunk_sizes(std::int64_t samples, int parts) {
  std::vector<std::int64_t> sizes;
  std::int64_t begin = 0;
  for (int part = 0; part < parts; ++part) {
    const Slice slice = microbatch_of(samples, parts, part, MicrobatchSizes::TorchChunk);
    EXPECT_EQ(slice.begin, begin);
    begin += slice.size;
    sizes.push_back(slice.size);
  }
  EXPECT_EQ(begin, samples);
  return sizes;
}

TEST(MicrobatchSizes, AreThoseOfTorchChunk) {  // measured with torch.chunk
  EXPECT_EQ(chunk_sizes(7, 4), (std::vector<std::int64_t>{2, 2, 2, 1}));
  EXPECT_EQ(chunk_sizes(10, 4), (std::vector<std::int64_t>{3, 3, 3, 1}));
  EXPECT_EQ(chunk_sizes(12, 4), (std::vector<std::int64_t>{3, 3, 3, 3}));
  const auto many = chunk_sizes(25000, 1667);
  EXPECT_EQ(std::ranges::count(many, 15), 1666);
  EXPECT_EQ(many.back(), 10);
  EXPECT_EQ(microbatch_of(10, 4, 0, MicrobatchSizes::Even).size, 3);
  EXPECT_EQ(microbatch_of(10, 4, 2, MicrobatchSizes::Even).size, 2);
}

TEST(MicrobatchSizes, MayBeOfFewerPartsThanAskedFor) {  // measured with torch.chunk
  struct Few {
    std::int64_t samples;
    int parts;
    std::int64_t made;
  };
  for (const Few& few : {Few{5, 4, 3}, Few{9, 4, 3}, Few{2, 4, 2}, Few{12, 5, 4},
                         Few{4944, 256, 248}, Few{272, 32, 31}, Few{10, 4, 4}})
    EXPECT_EQ(torch_chunks(few.samples, few.parts), few.made) << few.samples;
}

TEST(Loader, SharesOfReplicasAndMicroBatchesCoverTheMiniBatch) {
  const Numbers numbers;
  for (const int replicas : {1, 2, 3})
    for (const int microbatches : {1, 2, 3}) {
      Loader loader(settings(numbers, replicas, microbatches), {{indices(24), 11, false}});
      for (const int minibatch : {0, 1}) {
        std::int64_t next = 0;
        for (int r = 0; r < replicas; ++r) {
          std::int64_t of_replica = 0;
          for (int m = 0; m < microbatches; ++m) {
            const Share share = loader.share(minibatch, r, m);
            EXPECT_EQ(share.first_sample, next);
            EXPECT_EQ(share.all_samples, 11);
            next += share.samples;
            of_replica += share.samples;
          }
          EXPECT_EQ(loader.share(minibatch, r, 0).replica_samples, of_replica);
        }
        EXPECT_EQ(next, 11);
      }
      EXPECT_EQ(loader.share(2, 0, 0).all_samples, 2) << "the smaller last one";
    }
}

TEST(Loader, GivesInputsAndTargetsOfTheSameSamples) {
  const Numbers numbers;
  Loader loader(settings(numbers, 1, 2), {{epoch_permutation(indices(20), true, 1, 0), 5, true}});
  for (int m = 0; m < 2; ++m) {
    const Share share = loader.share(3, 0, m);
    const at::Tensor x = loader.inputs(3, share, at::kCPU)[0],
                     y = loader.targets(3, share, at::kCPU);
    EXPECT_EQ(x.size(0), m == 0 ? 3 : 2);
    EXPECT_TRUE(at::equal(x.select(1, 0), y.to(at::kFloat)));
  }
}

/// Token t of sample i is 10·i + t, its target the next one.
class Tokens final : public Dataset {
 public:
  explicit Tokens(std::int64_t length) : length_(length) {}
  void open(const DatasetRequest&) override {}
  std::int64_t size(Split) const override { return 12; }
  std::vector<std::int64_t> sample_shape() const override { return {length_}; }
  std::int64_t classes() const override { return 200; }
  std::int64_t vocabulary() const override { return 200; }
  Task task() const override { return Task::Continue; }
  Batch batch(Split, std::span<const std::int64_t> of, const RandomStream*) const override {
    const at::Tensor samples =
        at::tensor(at::ArrayRef<std::int64_t>(of.data(), of.size()), at::kLong);
    const at::Tensor x = 10 * samples.unsqueeze(1) + at::arange(length_, at::kLong);
    return {{x}, x + 1};
  }

 private:
  std::int64_t length_;
};

TEST(Loader, CutsMicroBatchesIntoSlicesOfTheirSequences) {
  const Tokens tokens(6);
  Loader loader({.dataset = &tokens, .replicas = 2, .microbatches = 2, .slices = 3},
                {{indices(12), 6, true}});
  for (int minibatch = 0; minibatch < 2; ++minibatch)
    for (int replica = 0; replica < 2; ++replica)
      for (int pass = 0; pass < 6; ++pass) {
        const Share share = loader.share(minibatch, replica, pass);
        const int micro = pass / 3, slice = pass % 3;
        EXPECT_EQ(share.first_sample, 3 * replica + 2 * micro);  // 3 samples: 2 and 1
        EXPECT_EQ(share.samples, 2 - micro);
        EXPECT_EQ(share.replica_samples, 3);
        EXPECT_EQ(share.all_samples, 6);
        EXPECT_EQ(std::pair(share.slice, share.slices), std::pair(slice, 3));
        const std::int64_t first = 10 * (6 * minibatch + share.first_sample) + 2 * slice;
        std::vector<std::int64_t> expected{first, first + 1};
        if (share.samples == 2) expected.insert(expected.end(), {first + 10, first + 11});
        EXPECT_EQ(labels(loader.inputs(minibatch, share, at::kCPU)[0]), expected);
        for (std::int64_t& each : expected) ++each;
        EXPECT_EQ(labels(loader.targets(minibatch, share, at::kCPU)), expected);
        EXPECT_EQ(loader.whole_targets(minibatch, share, at::kCPU, false).size(1), 6);
      }
}

TEST(Loader, RefusesSequencesThatSlicesDoNotDivide) {
  const Tokens tokens(5);
  Loader loader({.dataset = &tokens, .slices = 3}, {{indices(12), 6, true}});
  try {
    loader.inputs(0, loader.share(0, 0, 1), at::kCPU);
    FAIL() << "5 tokens were cut into 3 slices";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_EQ(error.message(),
              "pipeline.slices is 3, but the mini-batch has the shape 6×5; expected a number of "
              "tokens that the slices divide");
  }
}

TEST(Loader, GoesThroughItsEpochsInOrder) {
  const Numbers numbers;
  Loader loader(settings(numbers), {{indices(4), 2, true}, {{9, 8, 7, 6}, 2, true}});
  EXPECT_EQ(loader.minibatches(), 4);
  EXPECT_EQ(loader.per_epoch(), 2);
  EXPECT_EQ(labels(loader.targets(1, loader.share(1, 0, 0), at::kCPU)),
            (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(labels(loader.targets(2, loader.share(2, 0, 0), at::kCPU)),
            (std::vector<std::int64_t>{9, 8}));
}

TEST(Loader, AssemblesAMiniBatchOnceForAllWhoAskAndAgainLater) {
  const Numbers numbers;
  Loader::Settings of = settings(numbers);
  of.keep = 2;
  Loader loader(of, {{indices(40), 4, true}});
  for (int i = 0; i < 3; ++i) loader.inputs(0, loader.share(0, 0, 0), at::kCPU);
  loader.targets(0, loader.share(0, 0, 0), at::kCPU);
  EXPECT_EQ(numbers.assembled, 1);
  for (int m = 1; m < 4; ++m) loader.inputs(m, loader.share(m, 0, 0), at::kCPU);
  loader.inputs(0, loader.share(0, 0, 0), at::kCPU);
  EXPECT_EQ(numbers.assembled, 5);
}

TEST(Loader, AugmentsOnRequestOnly) {
  const Numbers numbers;
  Loader::Settings of = settings(numbers);
  Loader(of, {{indices(4), 4, true}}).inputs(0, {0, 4, 4, 4}, at::kCPU);
  EXPECT_FALSE(numbers.augmented);
  of.augment = true;
  Loader(of, {{indices(4), 4, true}}).inputs(0, {0, 4, 4, 4}, at::kCPU);
  EXPECT_TRUE(numbers.augmented);
}

TEST(Loader, HasThePrecisionAndShapeTheModelWants) {
  const Numbers numbers;
  Loader::Settings of = settings(numbers);
  of.precision = at::kDouble;
  of.input_shape = {1, 2, 1};
  const at::Tensor x = Loader(of, {{indices(4), 4, true}}).inputs(0, {1, 2, 4, 4}, at::kCPU)[0];
  EXPECT_EQ(x.scalar_type(), at::kDouble);
  EXPECT_EQ(x.sizes(), (std::vector<std::int64_t>{2, 1, 2, 1}));
}

TEST(Loader, GoesAheadInTheSameOrderAndOnlySoFar) {
  const Numbers numbers;
  Loader::Settings of = settings(numbers);
  of.keep = 1;
  of.prefetch = 3;
  const auto order = epoch_permutation(indices(40), true, 1, 0);
  {
    Loader loader(of, {{order, 4, true}});
    EXPECT_EQ(numbers.assembled, 0) << "nobody has asked yet";
    for (int m = 0; m < 10; ++m) {
      const Share share = loader.share(m, 0, 0);
      EXPECT_EQ(labels(loader.targets(m, share, at::kCPU)),
                std::vector(order.begin() + 4 * m, order.begin() + 4 * m + 4));
      EXPECT_LE(numbers.assembled, std::min(10, m + 4));
    }
  }
  EXPECT_EQ(numbers.assembled, 10) << "each once";
}

/// Every mini-batch with sample 13 is damaged.
class Damaged final : public Dataset {
 public:
  void open(const DatasetRequest&) override {}
  std::int64_t size(Split) const override { return 40; }
  std::vector<std::int64_t> sample_shape() const override { return {1}; }
  std::int64_t classes() const override { return 2; }
  Batch batch(Split, std::span<const std::int64_t> of, const RandomStream*) const override {
    if (std::ranges::count(of, 13) > 0) throw Error(ErrorKind::Data, "record 13 is damaged");
    const auto n = std::ssize(of);
    return {{at::zeros({n, 1})}, at::zeros({n}, at::kLong)};
  }
};

TEST(Loader, SaysWhatFailedAheadToThoseWhoAskForIt) {
  const Damaged damaged;
  Loader loader({.dataset = &damaged, .prefetch = 4, .input_shape = {1}}, {{indices(40), 4, true}});
  for (int m = 0; m < 10; ++m) {
    const auto ask = [&] { loader.inputs(m, loader.share(m, 0, 0), at::kCPU); };
    if (m == 3)
      EXPECT_THROW(ask(), Error);
    else
      EXPECT_NO_THROW(ask());
  }
}

TEST(Bucketed, PutsLikeLengthsIntoOneMiniBatchAndKeepsThemAll) {
  const auto order = epoch_permutation(indices(42), true, 3, 0);
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < 42; ++i) lengths.push_back(1 + i * 7 % 11);
  const auto sorted = bucketed(order, lengths, 4, 5, 9, 2);
  auto all = sorted;
  std::ranges::sort(all);
  EXPECT_EQ(all, indices(42));
  EXPECT_EQ(sorted, bucketed(order, lengths, 4, 5, 9, 2));
  EXPECT_NE(sorted, bucketed(order, lengths, 4, 5, 9, 3)) << "mini-batches change places";
  const auto length = [&](std::int64_t sample) {
    return lengths[static_cast<std::size_t>(sample)];
  };
  std::int64_t padding = 0, before = 0;
  for (auto batch = sorted.begin(), was = order.begin(); batch + 4 <= sorted.end();
       batch += 4, was += 4) {
    EXPECT_TRUE(
        std::is_sorted(batch, batch + 4, [&](auto a, auto b) { return length(a) > length(b); }));
    const auto longest = std::ranges::max(std::vector(was, was + 4), {}, length);
    for (int i = 0; i < 4; ++i) {
      padding += length(*batch) - length(batch[i]);
      before += length(longest) - length(was[i]);
    }
  }
  EXPECT_LT(3 * padding, before);
  EXPECT_TRUE(std::ranges::is_permutation(std::vector(sorted.end() - 2, sorted.end()),
                                          std::vector(order.end() - 2, order.end())))
      << "the smaller last one stays the last";
}

TEST(Loader, ServesSeveralThreads) {
  const Numbers numbers;
  Loader::Settings of = settings(numbers);
  of.keep = 2;
  of.prefetch = 2;
  Loader loader(of, {{epoch_permutation(indices(400), true, 1, 0), 4, true}});
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) {
          const int m = (i * (2 * t + 1)) % 100;
          const Share share = loader.share(m, 0, 0);
          const at::Tensor x = loader.inputs(m, share, at::kCPU)[0],
                           y = loader.targets(m, share, at::kCPU);
          wrong += !at::equal(x.select(1, 0), y.to(at::kFloat));
        }
      });
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace pipewright::test
