// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/image.h"

#include "datasets/images/resize.h"
#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/datasets/image_samples.h"

namespace pipewright {
namespace {

std::uint64_t hash_of(const std::vector<std::uint8_t>& pixels) {
  return stable_hash({reinterpret_cast<const char*>(pixels.data()), pixels.size()});
}

std::string refusal(const std::string& bytes) {
  const std::string error = error_of([&] { decode_image(bytes, "folder/x.jpg"); });
  EXPECT_TRUE(error.empty() || contains(error, "folder/x.jpg: "));
  return error;
}

TEST(Images, OfEveryKindAreDecodedAsByPillow) {
  for (const auto& sample : kImageSamples) {
    const Image image = decode_image(sample.file(), "x");
    EXPECT_EQ(image.height, sample.height) << sample.name;
    EXPECT_EQ(image.width, sample.width) << sample.name;
    EXPECT_EQ(hash_of(image.pixels), sample.hash) << sample.name;
  }
}

TEST(Images, CutShortAreRefused) {
  for (const char* name : {"jpeg_420", "jpeg_progressive", "jpeg_cmyk", "png_rgb", "png_palette"}) {
    const std::string file = sample_file(name);
    for (std::size_t size = 0; size + 2 < file.size(); ++size)  // a JPEG's end mark may be missing
      ASSERT_NE(refusal(file.substr(0, size)), "") << name << " of " << size << " bytes";
  }
  EXPECT_TRUE(contains(refusal(""), "is empty"));
  EXPECT_TRUE(contains(refusal(sample_file("jpeg_420").substr(0, 600)),
                       "damaged JPEG image: Premature end of input file"));
  EXPECT_TRUE(contains(refusal(sample_file("png_rgb").substr(0, 60)),
                       "damaged PNG image: the file ends too early"));
}

TEST(Images, WithAnyBitWrongAreDecodedOrRefusedAndNothingElse) {
  for (const char* name : {"jpeg_422", "jpeg_progressive", "jpeg_ycck", "png_interlaced"}) {
    const std::string file = sample_file(name);
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      std::string changed = file;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      error_of([&] {
        const Image image = decode_image(changed, "x");
        ASSERT_EQ(image.pixels.size(), static_cast<std::size_t>(3 * image.height * image.width));
      });
    }
  }
  std::string png = sample_file("png_rgb");
  png[png.size() - 14] ^= 1;  // of the pixels' checksum
  EXPECT_TRUE(contains(refusal(png), "CRC error"));
}

TEST(Images, OfTooManyPixelsAreRefusedBeforeMemoryIsTaken) {
  std::string jpeg = sample_file("jpeg_444");
  const std::size_t size = jpeg.find("\xff\xc0") + 5;
  jpeg.replace(size, 4, "\xea\x60\xea\x60");
  EXPECT_TRUE(contains(refusal(jpeg), "image of 60000 × 60000 pixels; at most 64000000"));
  jpeg.replace(size, 4, "\x1f\x40\x1f\x40");
  EXPECT_TRUE(contains(refusal(jpeg), "so few bytes hold no image of 8000 × 8000 pixels"));
  EXPECT_TRUE(contains(error_of([] { black_image(std::int64_t{1} << 40, 1 << 30, "x"); }), "x: "));
  EXPECT_NE(error_of([] { black_image(0, 5, "x"); }), "");
}

/// A chunk of a PNG that states another length than it has; its checksum is not right either.
std::string stating(std::uint32_t length, const std::string& kind, const std::string& content) {
  std::string chunk;
  for (int shift = 24; shift >= 0; shift -= 8) chunk += static_cast<char>(length >> shift);
  return chunk + kind + content + std::string(4, '\0');
}

TEST(Images, AreReadPastTheirMetadataAndRefusedWhereItStatesMoreThanIsThere) {
  constexpr std::size_t kBehindHeader = 8 + 12 + 13;
  const std::string png = sample_file("png_rgb"), content = "Comment\0of nobody";
  const auto pixels = decode_image(png, "x").pixels;
  for (const char* kind : {"tEXt", "zTXt", "iTXt", "iCCP", "eXIf", "sPLT", "gAMA", "puRe"}) {
    const auto with = [&](std::uint32_t length) {
      return std::string(png).insert(kBehindHeader, stating(length, kind, content));
    };
    EXPECT_EQ(decode_image(with(static_cast<std::uint32_t>(content.size())), "x").pixels, pixels)
        << kind;
    for (const std::uint32_t length : {0x7fffffffU, 0x70000000U, 0x00010000U})
      EXPECT_TRUE(contains(refusal(with(length)), "damaged PNG image: the file ends too early"))
          << kind << ' ' << length << ": " << refusal(with(length));
  }
}

TEST(Images, ThatAreNoneAreRefused) {
  EXPECT_TRUE(contains(refusal("GIF89a, or so"), "neither a JPEG nor a PNG image (13 bytes)"));
}

/// An image whose pixel i is (i · 7919) mod 251, as the generator of the hashes below has it.
Image pattern(std::int64_t height, std::int64_t width) {
  Image image = black_image(height, width, "x");
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(i * 7919 % 251);
  return image;
}

std::vector<std::uint8_t> resized(const Image& image, std::int64_t height, std::int64_t width,
                                  Box window) {
  const Resize resize(image.height, image.width, height, width, window);
  const auto plane = static_cast<std::size_t>(window.height * window.width);
  std::vector<std::uint8_t> one(plane), all(3 * plane);
  for (std::size_t c = 0; c < 3; ++c) {
    resize.apply(image.channels()[c], one.data());
    for (std::size_t i = 0; i < plane; ++i) all[3 * i + c] = one[i];
  }
  return all;
}

// Hashes of Pillow 12.3's resize((width, height), BILINEAR).
TEST(Resize, GivesPillowsBits) {
  struct Case {
    std::int64_t height, width, to_height, to_width;
    std::uint64_t hash;
  };
  for (const Case& c :
       {Case{1, 1, 5, 3, 13846929282098769552u}, Case{5, 3, 1, 1, 12514734915180790197u},
        Case{32, 32, 256, 256, 9455465145224354541u}, Case{64, 64, 224, 224, 18284833737820100691u},
        Case{100, 75, 224, 224, 1157474279993908287u}, Case{37, 53, 37, 20, 15603162535183396830u},
        Case{37, 53, 20, 53, 9711954309958162771u}, Case{300, 200, 47, 31, 153216058990119463u},
        Case{41, 67, 40, 68, 18437175635300577887u}, Case{224, 224, 224, 224, 6590553619125644849u},
        Case{7, 400, 90, 11, 11069743058906308591u}})
    EXPECT_EQ(hash_of(resized(pattern(c.height, c.width), c.to_height, c.to_width,
                              {0, 0, c.to_height, c.to_width})),
              c.hash)
        << c.height << " × " << c.width << " to " << c.to_height << " × " << c.to_width;
}

TEST(Resize, OfAWindowGivesThatPartOfTheWhole) {
  const Image image = pattern(37, 53);
  const auto whole = resized(image, 24, 70, {0, 0, 24, 70});
  const auto part = resized(image, 24, 70, {5, 11, 13, 40});
  for (std::size_t y = 0; y < 13; ++y)
    for (std::size_t x = 0; x < 3 * 40; ++x)
      ASSERT_EQ(part[y * 3 * 40 + x], whole[(y + 5) * 3 * 70 + 3 * 11 + x]);
}

}  // namespace
}  // namespace pipewright
