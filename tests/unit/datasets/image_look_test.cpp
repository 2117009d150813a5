// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/image_look.h"

#include <cmath>

#include "datasets/images/image.h"
#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/tolerances.h"

namespace pipewright {
namespace {

/// An image whose pixels all tell where they are.
Image gradient(std::int64_t height, std::int64_t width) {
  Image image = black_image(height, width, "x");
  for (std::int64_t y = 0, i = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (const std::int64_t value : {2 * x, 2 * y, 7 * x + 13 * y})
        image.pixels[static_cast<std::size_t>(i++)] = static_cast<std::uint8_t>(value);
  return image;
}

ImageLook look_of(std::int64_t size) {
  ImageLook look{.shape = {3, 0, 0}, .augment = true, .size = size};
  look.table = normalised(std::array{0.0, 0.0, 0.0}, std::array{1 / 255.0, 1 / 255.0, 1 / 255.0});
  return look;
}

/// Pixel values, channel by channel.
std::vector<int> seen(const Image& image, const ImageLook& look, const RandomStream* stream,
                      std::uint64_t sample = 0) {
  const auto shape = look.shape_for(stream == nullptr);
  std::vector<float> out(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
  write_image(image.channels(), look, stream, sample, out.data());
  std::vector<int> pixels;
  for (const float value : out) pixels.push_back(static_cast<int>(std::lround(value)));
  return pixels;
}

/// A part of an image, resized to a square.
std::vector<int> resized_part(const Image& image, Box part, std::int64_t side, bool mirrored) {
  const Resize resize(part.height, part.width, side, side, {0, 0, side, side});
  std::vector<std::uint8_t> plane(static_cast<std::size_t>(side * side));
  std::vector<int> all;
  for (const Channel& channel : image.channels()) {
    resize.apply(channel.part(part.top, part.left, part.height, part.width), plane.data());
    for (std::int64_t y = 0; y < side; ++y)
      for (std::int64_t x = 0; x < side; ++x)
        all.push_back(plane[static_cast<std::size_t>(y * side + (mirrored ? side - 1 - x : x))]);
  }
  return all;
}

TEST(RandomPart, LiesWithinAndHasTheAreasAndRatiosOfThePaper) {
  const RandomStream stream(3, "augment");
  double least_area = 1, most_area = 0, least_ratio = 9, most_ratio = 0, mean_area = 0;
  constexpr int kSamples = 4000;
  // Sides are rounded to one of 400 pixels, and the least are 98 long: ratios move by a part of
  // 1/98.
  constexpr double kPixels = 1.0 / 98;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const Box part = random_part(400, 400, stream, sample << 20);
    ASSERT_TRUE(part.top >= 0 && part.left >= 0 && part.height > 0 && part.width > 0);
    ASSERT_TRUE(part.top + part.height <= 400 && part.left + part.width <= 400);
    const double area = static_cast<double>(part.height * part.width) / 160'000;
    const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    least_area = std::min(least_area, area);
    most_area = std::max(most_area, area);
    least_ratio = std::min(least_ratio, ratio);
    most_ratio = std::max(most_ratio, ratio);
    mean_area += area / kSamples;
  }
  EXPECT_NEAR(least_area, 0.08, tolerance::extreme_of(kSamples, 0.92) + kPixels);
  EXPECT_GT(most_area, 0.96);
  // ln r is uniform within ln 4/3 of 0, an interval of length .575.
  EXPECT_NEAR(least_ratio, 0.75, 0.75 * tolerance::extreme_of(kSamples, 0.575) + kPixels);
  EXPECT_NEAR(most_ratio, 4.0 / 3, 4.0 / 3 * tolerance::extreme_of(kSamples, 0.575) + kPixels);
  // Area a is uniform on [.08, 1] and fits where ln a ≤ −|ln r|: of those that do the integrals
  // over |ln r| give the mean .4778 and the variance .0545. Ten tries in vain, after which the
  // whole is taken, are one in 3·10⁸.
  EXPECT_NEAR(mean_area, 0.4778, tolerance::mean_of(kSamples, 0.0545) + kPixels);
}

TEST(RandomPart, IsInTheMiddleWhereNothingElseFits) {
  const RandomStream stream(1, "augment");
  const auto expect = [&](std::int64_t height, std::int64_t width, Box box) {
    for (std::uint64_t sample = 0; sample < 20; ++sample) {
      const Box part = random_part(height, width, stream, sample << 20);
      EXPECT_EQ(std::tie(part.top, part.left, part.height, part.width),
                std::tie(box.top, box.left, box.height, box.width));
    }
  };
  expect(3, 300, {0, 148, 3, 4});  // 4:3
  expect(300, 3, {148, 0, 4, 3});  // 3:4
  expect(1, 100, {0, 49, 1, 1});
  expect(1, 1, {0, 0, 1, 1});
}

TEST(ImageLook, ResizesARandomPartInTraining) {
  const Image image = gradient(40, 60);
  ImageLook look = look_of(16);
  const RandomStream stream(5, "augment");
  int mirrored = 0;
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const std::uint64_t first = sample << 20;
    const Box part = random_part(40, 60, stream, first);
    const bool mirror = stream.below(first + 40, 2) == 1;
    mirrored += mirror;
    look.flip = true;
    EXPECT_EQ(seen(image, look, &stream, sample), resized_part(image, part, 16, mirror));
    look.flip = false;
    EXPECT_EQ(seen(image, look, &stream, sample), resized_part(image, part, 16, false));
  }
  EXPECT_TRUE(mirrored > 10 && mirrored < 40) << mirrored;
}

// Side 7 is cut from images whose shorter side is 8: 7 · 256/224.
TEST(ImageLook, ResizesTheShorterSideAndTakesTheMiddleInEvaluation) {
  const auto middle = [](std::int64_t height, std::int64_t width, std::int64_t tall,
                         std::int64_t wide, std::int64_t top, std::int64_t left) {
    const Image image = gradient(height, width);
    const Resize whole(height, width, tall, wide, {0, 0, tall, wide});
    std::vector<std::uint8_t> plane(static_cast<std::size_t>(tall * wide));
    std::vector<int> expected;
    for (const Channel& channel : image.channels()) {
      whole.apply(channel, plane.data());
      for (std::int64_t y = top; y < top + 7; ++y)
        for (std::int64_t x = left; x < left + 7; ++x)
          expected.push_back(plane[static_cast<std::size_t>(y * wide + x)]);
    }
    EXPECT_EQ(seen(image, look_of(7), nullptr), expected) << height << " × " << width;
  };
  middle(16, 16, 8, 8, 0, 0);    // a margin of 1/2 is rounded to 0, the even neighbour
  middle(16, 20, 8, 10, 0, 2);   // 3/2 to 2
  middle(48, 32, 12, 8, 2, 0);   // 5/2 to 2
  middle(10, 33, 8, 26, 0, 10);  // 26.4 to 26; 19/2 to 10
  middle(4, 5, 8, 10, 0, 2);     // enlarged
}

TEST(ImageLook, MayHaveAnotherSizeInEvaluation) {
  ImageLook look = look_of(12);
  look.eval_size = 7;
  EXPECT_EQ(look.shape_for(false), (std::vector<std::int64_t>{3, 12, 12}));
  EXPECT_EQ(look.shape_for(true), (std::vector<std::int64_t>{3, 7, 7}));
  const Image image = gradient(20, 30);
  EXPECT_EQ(seen(image, look, nullptr), seen(image, look_of(7), nullptr));
}

TEST(ImageLook, WithoutAugmentationTrainsOnTheMiddleInTrainingSize) {
  ImageLook look = look_of(12);
  look.eval_size = 7;
  look.augment = false;
  const RandomStream stream(5, "augment");
  const Image image = gradient(20, 30);
  EXPECT_EQ(seen(image, look, &stream), seen(image, look_of(12), nullptr));
}

TEST(ImageLook, MirrorsOnlyIfItMayWithoutSizeToo) {
  ImageLook look = look_of(0);
  look.shape = {3, 5, 6};
  look.flip = false;
  const RandomStream stream(5, "augment");
  const Image image = gradient(5, 6);
  for (std::uint64_t sample = 0; sample < 20; ++sample)
    EXPECT_EQ(seen(image, look, &stream, sample), seen(image, look, nullptr)) << "no padding";
}

TEST(ImageLook, RefusesAnEvaluationSizeAlone) {
  const auto problem = [](const std::string& options) {
    return fixtures::error_of([&] { fixtures::make_dataset("cifar10", options); },
                              ErrorKind::Experiment);
  };
  EXPECT_TRUE(fixtures::contains(problem("{eval_size: 224}"), "needs size as well"));
  EXPECT_EQ(problem("{eval_size: 224, size: 299, flip: false}"), "");
  EXPECT_NE(problem("{size: 5000}"), "");
}

}  // namespace
}  // namespace pipewright
