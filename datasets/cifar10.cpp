// SPDX-License-Identifier: Apache-2.0
/// CIFAR-10 in its authors' binary format: 10,000 records in each of data_batch_1..5.bin and
/// test_batch.bin.
#include "core/base/error.h"
#include "datasets/images/cifar.h"

namespace pipewright {
namespace {

constexpr std::int64_t kTrainingFiles = 5;
constexpr CifarLabel kLabel{.labels = 1, .position = 0, .classes = 10};

OfficialFile official(const std::string& name) {
  return {.name = name,
          .size_in_bytes = 10'000 * (1 + kCifarPixels),
          .origin =
              "the binary version of CIFAR-10 (cifar-10-binary.tar.gz, md5 "
              "c32a1d4ab5d03f1284b67883e8d87530), available from the CIFAR-10 page of Alex "
              "Krizhevsky at the University of Toronto",
          .dataset = "cifar10"};
}

OfficialFile training_file(std::int64_t number) {
  return official(concat("data_batch_", number, ".bin"));
}

std::vector<OfficialFile> all_files() {
  std::vector<OfficialFile> files{official("test_batch.bin")};
  for (std::int64_t number = 1; number <= kTrainingFiles; ++number)
    files.push_back(training_file(number));
  return files;
}

/// Number of the last training file present. Missing files before it are then reported.
std::int64_t last_of(const OfficialFiles& files) {
  for (std::int64_t number = kTrainingFiles; number > 1; --number)
    if (files.holds(training_file(number))) return number;
  return 1;
}

class Cifar10 final : public ByteImageDataset {
 public:
  explicit Cifar10(Options& options)
      : root_(options.path("root", "~/data/cifar-10-batches-bin",
                           "Folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin, "
                           "plain or gzipped (.gz), or of cifar-10-binary.tar.gz; or that file.")),
        batches_(options.integer("batches", 0,
                                 "Training files to use, from data_batch_1 on, each of 10,000 "
                                 "images; 0 = all that are there, at least the first.",
                                 Range{0, kTrainingFiles})) {
    look_ = {.shape = {3, kCifarSide, kCifarSide}, .classes = kLabel.classes, .padding = 4};
    read_colour_options(options, {kCifarMean, kCifarDeviation}, look_);
  }

  void open(const DatasetRequest&) override {
    OfficialFiles files(root_, "cifar-10-binary.tar.gz", all_files());
    ByteImages train, test;
    const std::int64_t count = batches_ > 0 ? batches_ : last_of(files);
    for (std::int64_t number = 1; number <= count; ++number)
      append_cifar_records(files, training_file(number), kLabel, train);
    append_cifar_records(files, official("test_batch.bin"), kLabel, test);
    train_ = std::move(train);
    test_ = std::move(test);
  }

 private:
  std::filesystem::path root_;
  std::int64_t batches_;
};

}  // namespace

PIPEWRIGHT_DATASET(cifar10, Cifar10,
                   "CIFAR-10: 32 × 32 colour images of 10 classes, 50,000 + 10,000.")

}  // namespace pipewright
