/// Fashion-MNIST in its official four idx files: 28 × 28 grey images of 10 kinds of clothing.
#include <array>

#include "datasets/formats/byte_images.h"
#include "datasets/formats/idx.h"
#include "datasets/formats/official_file.h"

namespace pipewright {
namespace {

constexpr std::int64_t kSide = 28;
constexpr int kClasses = 10;

/// The idx file of that name, each of its records an element or an image.
struct IdxFile {
  IdxFile(const std::filesystem::path& root, const std::string& name, const std::string& md5,
          const std::vector<std::int64_t>& dimensions)
      : official{.name = name,
                 .size_in_bytes = idx_size(dimensions),
                 .origin = "Fashion-MNIST (" + name + ".gz, md5 " + md5 +
                           "), to be had from Zalando Research's repository fashion-mnist"},
        content(read_official(root, official)),
        elements(idx_elements(content, dimensions, root / name)) {}

  OfficialFile official;
  std::string content;
  std::string_view elements;
};

ByteImages read_split(const std::filesystem::path& root, const std::string& prefix,
                      std::int64_t count, const std::string& images_md5,
                      const std::string& labels_md5) {
  const IdxFile images(root, prefix + "-images-idx3-ubyte", images_md5, {count, kSide, kSide});
  const IdxFile labels(root, prefix + "-labels-idx1-ubyte", labels_md5, {count});
  constexpr std::size_t kPixels = kSide * kSide;
  ByteImages split;
  split.pixels.reserve(images.elements.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto label = static_cast<std::uint8_t>(labels.elements[at]);
    if (label >= kClasses) throw_bad_label(root, labels.official, i, label, kClasses);
    split.append(images.elements.substr(at * kPixels, kPixels), label);
  }
  return split;
}

class FashionMnist final : public ByteImageDataset {
 public:
  explicit FashionMnist(Options& options)
      : root_(options.path("root", "~/data/fashion-mnist",
                           "Folder of the four idx files (train-images-idx3-ubyte and so on), "
                           "plain or gzipped (.gz).")) {
    look_ = {.shape = {1, kSide, kSide}, .classes = kClasses, .padding = 2};
    look_.augment = options.flag("augment", false,
                                 "Training images: 2 black pixels of padding, a random 28 × 28 "
                                 "crop, mirrored with probability 1/2.");
    const std::array mean{
        options.number("mean", 0.2860, "Subtracted from the pixels, which run from 0 to 1.")};
    const std::array deviation{options.number(
        "std", 0.3530, "What the pixels are divided by after that.", Range{.least = 1e-6})};
    look_.table = normalised(mean, deviation);
  }

  void open(const DatasetRequest&) override {
    train_ = read_split(root_, "train", 60'000, "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                        "25c81989df183df01b3e8a0aad5dffbe");
    test_ = read_split(root_, "t10k", 10'000, "bef4ecab320f06d8554ea6380940ec79",
                       "bb300cfdad3c16e7a12a480ee83cd310");
  }

 private:
  std::filesystem::path root_;
};

}  // namespace

PIPEWRIGHT_DATASET(fashion_mnist, FashionMnist,
                   "Fashion-MNIST: 28 × 28 grey images of 10 classes, 60,000 + 10,000.")

}  // namespace pipewright
