// SPDX-License-Identifier: Apache-2.0
/// CIFAR-100 in its authors' binary format: 50,000 records in train.bin and 10,000 in test.bin,
/// each with a coarse label (20 superclasses) and a fine one (100 classes).
#include "datasets/images/cifar.h"

namespace pipewright {
namespace {

constexpr CifarLabel kCoarse{.labels = 2, .position = 0, .classes = 20};
constexpr CifarLabel kFine{.labels = 2, .position = 1, .classes = 100};

/// An official file. Published subsets have the same format with fewer records, so they are
/// accepted.
OfficialFile official(const std::string& name, std::uint64_t records) {
  constexpr std::uint64_t kRecord = 2 + kCifarPixels;
  return {.name = name,
          .size_in_bytes = records * kRecord,
          .origin =
              "the binary version of CIFAR-100 (cifar-100-binary.tar.gz, md5 "
              "03b5dce01913d631647c71ecec9e9cb8), available from the CIFAR page of Alex Krizhevsky "
              "at the University of Toronto",
          .dataset = "cifar100",
          .record_in_bytes = kRecord};
}

class Cifar100 final : public ByteImageDataset {
 public:
  explicit Cifar100(Options& options)
      : root_(options.path("root", "~/data/cifar-100-binary",
                           "Folder of train.bin and test.bin, plain or gzipped (.gz), or of "
                           "cifar-100-binary.tar.gz; or that file.")),
        label_(options.choice("labels", {"fine", "coarse"}, "fine",
                              "fine: 100 classes; coarse: their 20 superclasses.") == "fine"
                   ? kFine
                   : kCoarse) {
    look_ = {.shape = {3, kCifarSide, kCifarSide}, .classes = label_.classes, .padding = 4};
    read_colour_options(options, {kCifarMean, kCifarDeviation}, look_);
  }

  void open(const DatasetRequest&) override {
    const OfficialFile train_file = official("train.bin", 50'000);
    const OfficialFile test_file = official("test.bin", 10'000);
    OfficialFiles files(root_, "cifar-100-binary.tar.gz", {train_file, test_file});
    ByteImages train, test;
    append_cifar_records(files, train_file, label_, train);
    append_cifar_records(files, test_file, label_, test);
    train_ = std::move(train);
    test_ = std::move(test);
  }

 private:
  std::filesystem::path root_;
  CifarLabel label_;
};

}  // namespace

PIPEWRIGHT_DATASET(cifar100, Cifar100,
                   "CIFAR-100: 32 × 32 colour images of 100 classes or 20 superclasses, 50,000 + "
                   "10,000.")

}  // namespace pipewright
