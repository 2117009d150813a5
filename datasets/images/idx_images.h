/// MNIST and its successors: four idx files of 28 × 28 grey images and labels of 10 classes, 60,000
/// for training and 10,000 for testing.
#pragma once

#include <filesystem>
#include <string>

#include "datasets/images/byte_images.h"

namespace pipewright {

/// A data set of that form: what differs from one to the next.
struct IdxPublication {
  std::string dataset;     ///< the registered name; see sources.h for its files
  std::string title;       ///< "Fashion-MNIST"
  std::string home;        ///< who has it, for who does not find it
  std::string folder;      ///< where it is unless `root` is given
  double mean, deviation;  ///< of all training pixels, which run from 0 to 1
  bool flip = true;        ///< whether a mirrored image is still one of its class
};

class IdxImageDataset : public ByteImageDataset {
 public:
  /// Reads `root`, `augment`, `flip`, `mean` and `std`.
  IdxImageDataset(Options& options, IdxPublication publication);
  void open(const DatasetRequest& request) final;

 private:
  IdxPublication publication_;
  std::filesystem::path root_;
};

}  // namespace pipewright
