// SPDX-License-Identifier: Apache-2.0
/// MNIST in its official four idx files: 28 × 28 grey images of handwritten digits. Mirrored digits
/// are no digits, so `flip` is false by default.
#include "datasets/images/idx_images.h"

namespace pipewright {
namespace {

class Mnist final : public IdxImageDataset {
 public:
  explicit Mnist(Options& options)
      : IdxImageDataset(options, {.dataset = "mnist",
                                  .title = "MNIST",
                                  .home = "the MNIST page of Yann LeCun, Corinna Cortes and "
                                          "Christopher Burges, or a mirror of it",
                                  .folder = "~/data/mnist",
                                  .mean = 0.1307,
                                  .deviation = 0.3081,
                                  .flip = false}) {}
};

}  // namespace

PIPEWRIGHT_DATASET(mnist, Mnist, "MNIST: 28 × 28 grey handwritten digits, 60,000 + 10,000.")

}  // namespace pipewright
