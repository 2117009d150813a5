// SPDX-License-Identifier: Apache-2.0
/// MNIST and its successors: four idx files with 28 × 28 grey images and their labels of 10
/// classes, 60,000 for training and 10,000 for testing.
#pragma once

#include <filesystem>
#include <string>

#include "datasets/images/byte_images.h"

namespace pipewright {

/// The properties in which such data sets differ.
struct IdxPublication {
  std::string dataset;     ///< registered name; sources.h has its files
  std::string title;       ///< "Fashion-MNIST"
  std::string home;        ///< source of the files, for error messages
  std::string folder;      ///< default of the option `root`
  double mean, deviation;  ///< of all training pixels, scaled to 0 … 1
  bool flip = true;        ///< whether a mirrored image keeps its class
};

class IdxImageDataset : public ByteImageDataset {
 public:
  /// Reads the options `root`, `augment`, `flip`, `mean` and `std`.
  IdxImageDataset(Options& options, IdxPublication publication);
  void open(const DatasetRequest& request) final;

 private:
  IdxPublication publication_;
  std::filesystem::path root_;
};

}  // namespace pipewright
