// SPDX-License-Identifier: Apache-2.0
/// Handwritten digits of 8 × 8 pixels, which are part of the program and train in seconds. Origin
/// and licence are in digits.inc.
#include "core/base/error.h"
#include "datasets/images/byte_images.h"

namespace pipewright {
namespace {

constexpr std::string_view kRecords =
#include "datasets/digits.inc"
    ;
constexpr std::size_t kPixels = 64, kRecordSize = kPixels + 1, kCount = 1797, kTrain = 1437;
static_assert(kRecords.size() == kCount * kRecordSize);

/// Maps pixels 0 to 16, the number of inked dots in a field of 4 × 4, to their share.
PixelTable share_of_ink() {
  PixelTable table(1);
  for (std::size_t p = 0; p < table[0].size(); ++p) table[0][p] = static_cast<float>(p) / 16.0f;
  return table;
}

class Digits final : public ByteImageDataset {
 public:
  explicit Digits(Options&) {
    look_ = {.shape = {1, 8, 8}, .classes = 10, .table = share_of_ink()};
  }

  void open(const DatasetRequest&) override {
    ByteImages train, test;
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::string_view record = kRecords.substr(i * kRecordSize, kRecordSize);
      std::string pixels(record.substr(0, kPixels));
      for (char& pixel : pixels) pixel = static_cast<char>(pixel - 'a');
      (i < kTrain ? train : test).append(pixels, static_cast<std::uint8_t>(record[kPixels] - '0'));
    }
    train_ = std::move(train);
    test_ = std::move(test);
  }
};

}  // namespace

PIPEWRIGHT_DATASET(digits, Digits,
                   "Handwritten digits (UCI): 8 × 8 grey images of 10 classes, built in; the first "
                   "1,437 are for training, the last 360 for testing.")

}  // namespace pipewright
