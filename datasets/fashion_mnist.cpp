// SPDX-License-Identifier: Apache-2.0
/// Fashion-MNIST in its official four idx files: 28 × 28 grey images of 10 kinds of clothing.
#include "datasets/images/idx_images.h"

namespace pipewright {
namespace {

class FashionMnist final : public IdxImageDataset {
 public:
  explicit FashionMnist(Options& options)
      : IdxImageDataset(options, {.dataset = "fashion_mnist",
                                  .title = "Fashion-MNIST",
                                  .home = "Zalando Research's repository fashion-mnist",
                                  .folder = "~/data/fashion-mnist",
                                  .mean = 0.2860,
                                  .deviation = 0.3530}) {}
};

}  // namespace

PIPEWRIGHT_DATASET(fashion_mnist, FashionMnist,
                   "Fashion-MNIST: 28 × 28 grey images of 10 classes, 60,000 + 10,000.")

}  // namespace pipewright
