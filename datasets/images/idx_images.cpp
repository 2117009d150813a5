// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/idx_images.h"

#include <array>

#include "core/base/text.h"
#include "core/fetch/sources.h"
#include "datasets/archives/official_file.h"
#include "datasets/images/idx.h"

namespace pipewright {
namespace {

constexpr std::int64_t kSide = 28;
constexpr int kClasses = 10;

std::string md5_of(const IdxPublication& publication, const std::string& name) {
  for (const SourceFile& file : find_source(publication.dataset)->files)
    if (file.name == name) return file.checksum;
  return "unknown";
}

/// The idx file with the name `name`, read and checked; its records are labels or images.
struct IdxFile {
  IdxFile(const std::filesystem::path& root, const IdxPublication& of, const std::string& name,
          const std::vector<std::int64_t>& dimensions)
      : official{.name = name,
                 .size_in_bytes = idx_size(dimensions),
                 .origin = concat(of.title, " (", name, ".gz, md5 ", md5_of(of, name + ".gz"),
                                  "), available from ", of.home),
                 .dataset = of.dataset},
        content(read_official(root, official)),
        elements(idx_elements(content, dimensions, root / name)) {}

  OfficialFile official;
  std::string content;
  std::string_view elements;
};

ByteImages images_of(const std::filesystem::path& root, const IdxFile& images,
                     const IdxFile& labels) {
  constexpr std::size_t kPixels = kSide * kSide;
  ByteImages split;
  split.pixels.reserve(images.elements.size());
  for (std::size_t i = 0; i < labels.elements.size(); ++i) {
    const auto label = static_cast<std::uint8_t>(labels.elements[i]);
    if (label >= kClasses)
      throw_bad_label(root, labels.official, static_cast<std::int64_t>(i), label, kClasses);
    split.append(images.elements.substr(i * kPixels, kPixels), label);
  }
  return split;
}

}  // namespace

IdxImageDataset::IdxImageDataset(Options& options, IdxPublication publication)
    : publication_(std::move(publication)),
      root_(options.path("root", publication_.folder,
                         "Folder of the four idx files (train-images-idx3-ubyte and so on), "
                         "plain or gzipped (.gz).")) {
  look_ = {.shape = {1, kSide, kSide}, .classes = kClasses, .padding = 2};
  look_.augment = options.flag("augment", false,
                               "Training images: 2 black pixels of padding, a random 28 × 28 "
                               "crop, mirrored with probability 1/2 if flip.");
  look_.flip = options.flag("flip", publication_.flip, "Whether augmented images are mirrored.");
  const std::array mean{options.number("mean", publication_.mean,
                                       "Subtracted from the pixels, which run from 0 to 1.")};
  const std::array deviation{options.number("std", publication_.deviation,
                                            "What the pixels are divided by after that.",
                                            Range{.least = 1e-6})};
  look_.table = normalised(mean, deviation);
}

void IdxImageDataset::open(const DatasetRequest&) {
  const auto read = [this](const std::string& prefix, std::int64_t count) {
    const IdxFile images(root_, publication_, prefix + "-images-idx3-ubyte", {count, kSide, kSide});
    const IdxFile labels(root_, publication_, prefix + "-labels-idx1-ubyte", {count});
    return images_of(root_, images, labels);
  };
  train_ = read("train", 60'000);
  test_ = read("t10k", 10'000);
}

}  // namespace pipewright
