// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/byte_images.h"

#include <set>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

constexpr std::int64_t kChannels = 2, kHeight = 5, kWidth = 4, kPadding = 2;
constexpr std::size_t kPixels = kChannels * kHeight * kWidth;

/// Images whose pixels all differ, so that every view of them shows where it was taken.
class Numbered final : public ByteImageDataset {
 public:
  explicit Numbered(bool augment) {
    look_ = {.shape = {kChannels, kHeight, kWidth},
             .classes = 3,
             .augment = augment,
             .padding = kPadding};
    look_.table = normalised(std::array{0.5, 0.25}, std::array{2.0, 0.125});
    for (std::uint8_t image = 0; image < 6; ++image) {
      std::string pixels(kPixels, '\0');
      for (std::size_t p = 0; p < kPixels; ++p) pixels[p] = static_cast<char>(1 + p + image * 40u);
      (image < 4 ? train_ : test_).append(pixels, image % 3);
    }
  }
  void open(const DatasetRequest&) override {}

  /// The pixel as the model sees it; black outside of the image.
  float seen(std::size_t image, std::int64_t channel, std::int64_t y, std::int64_t x) const {
    const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
    const auto at = static_cast<std::size_t>((channel * kHeight + y) * kWidth + x);
    const float pixel = inside ? train_.pixels[image * kPixels + at] : 0;
    return channel == 0 ? (pixel / 255.0f - 0.5f) / 2.0f : (pixel / 255.0f - 0.25f) / 0.125f;
  }
};

TEST(ByteImages, AreNormalisedPerChannelInTheOrderAsked) {
  const Numbered data(true);
  const std::vector<std::int64_t> indices{3, 0, 3};
  const Batch batch = data.batch(Split::Train, indices, nullptr);
  EXPECT_EQ(batch.x[0].sizes().vec(), (std::vector<std::int64_t>{3, kChannels, kHeight, kWidth}));
  EXPECT_EQ(values_of<std::int64_t>(batch.y), (std::vector<std::int64_t>{0, 0, 0}));
  const auto x = values_of<float>(batch.x[0]);
  std::size_t at = 0;
  for (const std::size_t image : {3u, 0u, 3u})
    for (std::int64_t c = 0; c < kChannels; ++c)
      for (std::int64_t row = 0; row < kHeight; ++row)
        for (std::int64_t column = 0; column < kWidth; ++column)
          ASSERT_EQ(x[at++], data.seen(image, c, row, column));
}

TEST(ByteImages, AugmentedOnesAreAPaddedCroppedAndMirroredImage) {
  const Numbered data(true);
  const std::vector<std::int64_t> indices(300, 2);
  const RandomStream stream(7, "augmentation", 3, 4);
  const auto x = values_of<float>(data.batch(Split::Train, indices, &stream).x[0]);
  std::set<std::array<std::int64_t, 3>> views;
  std::size_t at = 0;
  for (std::uint64_t sample = 0; sample < indices.size(); ++sample) {
    const std::uint64_t first = sample << 20;
    const auto top = static_cast<std::int64_t>(stream.below(first, 5)) - kPadding;
    const auto left = static_cast<std::int64_t>(stream.below(first + 1, 5)) - kPadding;
    const bool mirrored = stream.below(first + 2, 2) == 1;
    views.insert({top, left, mirrored});
    for (std::int64_t c = 0; c < kChannels; ++c)
      for (std::int64_t row = 0; row < kHeight; ++row)
        for (std::int64_t column = 0; column < kWidth; ++column) {
          const std::int64_t from = mirrored ? kWidth - 1 - column : column;
          ASSERT_EQ(x[at++], data.seen(2, c, top + row, left + from))
              << "sample " << sample << " top " << top << " left " << left << mirrored;
        }
  }
  EXPECT_EQ(views.size(), 50u) << "all 5 × 5 × 2 views";
}

TEST(ByteImages, AugmentationDependsOnThePlaceInTheBatchAndNothingElse) {
  const Numbered data(true);
  const RandomStream stream(1, "augmentation");
  const std::vector<std::int64_t> all{0, 1, 2, 3}, others{3, 1, 1};
  const auto a = values_of<float>(data.batch(Split::Train, all, &stream).x[0]);
  const auto b = values_of<float>(data.batch(Split::Train, others, &stream).x[0]);
  EXPECT_TRUE(std::equal(a.begin() + kPixels, a.begin() + 2 * kPixels, b.begin() + kPixels));
}

TEST(ByteImages, AreLeftAloneWhenAugmentationIsOff) {
  const Numbered data(false);
  const RandomStream stream(1, "augmentation");
  const auto indices = first_indices(4);
  EXPECT_EQ(values_of<float>(data.batch(Split::Train, indices, &stream).x[0]),
            values_of<float>(data.batch(Split::Train, indices, nullptr).x[0]));
}

TEST(ByteImages, OfBothSplitsAreCountedAndAnEmptyBatchIsEmpty) {
  const Numbered data(false);
  EXPECT_EQ(data.size(Split::Train), 4);
  EXPECT_EQ(data.size(Split::Test), 2);
  EXPECT_EQ(values_of<std::int64_t>(data.batch(Split::Test, first_indices(2), nullptr).y),
            (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(data.batch(Split::Test, {}, nullptr).x[0].size(0), 0);
}

}  // namespace
}  // namespace pipewright
