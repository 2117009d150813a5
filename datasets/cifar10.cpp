/// CIFAR-10 in its authors' binary format: records of 1 label byte and 3,072 pixel bytes (red,
/// green and blue plane of 32 × 32), 10,000 of them in each of data_batch_1..5.bin and
/// test_batch.bin.
#include "core/base/error.h"
#include "datasets/formats/byte_images.h"
#include "datasets/formats/official_file.h"

namespace pipewright {
namespace {

constexpr std::int64_t kRecords = 10'000;
constexpr std::size_t kPixels = 3 * 32 * 32;
constexpr std::int64_t kTrainingFiles = 5;
constexpr int kClasses = 10;

OfficialFile official(const std::string& name) {
  return {.name = name,
          .size_in_bytes = kRecords * (1 + kPixels),
          .origin =
              "the binary version of CIFAR-10 (cifar-10-binary.tar.gz, md5 "
              "c32a1d4ab5d03f1284b67883e8d87530), to be had from the CIFAR-10 page of Alex "
              "Krizhevsky at the University of Toronto"};
}

OfficialFile training_file(std::int64_t number) {
  return official(concat("data_batch_", number, ".bin"));
}

void append_records(const std::filesystem::path& root, const OfficialFile& file,
                    ByteImages& images) {
  const std::string content = read_official(root, file);
  images.pixels.reserve(images.pixels.size() + kRecords * kPixels);
  for (std::int64_t record = 0; record < kRecords; ++record) {
    const auto at = static_cast<std::size_t>(record) * (1 + kPixels);
    const auto label = static_cast<std::uint8_t>(content[at]);
    if (label >= kClasses) throw_bad_label(root, file, record, label, kClasses);
    images.append(std::string_view(content).substr(at + 1, kPixels), label);
  }
}

class Cifar10 final : public ByteImageDataset {
 public:
  explicit Cifar10(Options& options)
      : root_(options.path("root", "~/data/cifar-10-batches-bin",
                           "Folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin, "
                           "plain or gzipped (.gz).")),
        batches_(options.integer("batches", 0,
                                 "Training files to use, from data_batch_1 on, each of 10,000 "
                                 "images; 0 = all that are there, at least the first.",
                                 Range{0, kTrainingFiles})) {
    look_ = {.shape = {3, 32, 32}, .classes = kClasses, .padding = 4};
    look_.augment = options.flag("augment", true,
                                 "Training images: 4 black pixels of padding, a random 32 × 32 "
                                 "crop, mirrored with probability 1/2.");
    const auto mean =
        channels(options, "mean", {0.4914, 0.4822, 0.4465}, {},
                 "Subtracted from the pixels, which run from 0 to 1; red, green, blue.");
    const auto deviation = channels(options, "std", {0.2023, 0.1994, 0.2010}, Range{.least = 1e-6},
                                    "What the pixels are divided by after that; red, green, blue.");
    look_.table = normalised(mean, deviation);
  }

  void open(const DatasetRequest&) override {
    ByteImages train, test;
    const std::int64_t files = batches_ > 0 ? batches_ : last_there();
    for (std::int64_t number = 1; number <= files; ++number)
      append_records(root_, training_file(number), train);
    append_records(root_, official("test_batch.bin"), test);
    train_ = std::move(train);
    test_ = std::move(test);
  }

 private:
  static std::vector<double> channels(Options& options, const std::string& name,
                                      const std::vector<double>& fallback, Range range,
                                      const std::string& help) {
    std::vector<double> values = options.numbers(name, fallback, help, range);
    if (values.size() == fallback.size()) return values;
    options.problem(name, concat("needs 3 numbers, one per channel, has ", values.size()));
    return fallback;
  }

  /// The highest training file present, so that a hole before it is reported as missing.
  std::int64_t last_there() const {
    for (std::int64_t number = kTrainingFiles; number > 1; --number)
      if (is_there(root_, training_file(number))) return number;
    return 1;
  }

  std::filesystem::path root_;
  std::int64_t batches_;
};

}  // namespace

PIPEWRIGHT_DATASET(cifar10, Cifar10,
                   "CIFAR-10: 32 × 32 colour images of 10 classes, 50,000 + 10,000.")

}  // namespace pipewright
