/// MNIST in its official four idx files: 28 × 28 grey images of handwritten digits. Mirrored ones
/// are no digits, so `flip` is false unless asked for.
#include "datasets/formats/idx_images.h"

namespace pipewright {
namespace {

class Mnist final : public IdxImageDataset {
 public:
  explicit Mnist(Options& options)
      : IdxImageDataset(options, {.title = "MNIST",
                                  .home = "the MNIST page of Yann LeCun, Corinna Cortes and "
                                          "Christopher Burges, or a mirror of it",
                                  .folder = "~/data/mnist",
                                  .train_images_md5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                                  .train_labels_md5 = "d53e105ee54ea40749a09fcbcd1e9432",
                                  .test_images_md5 = "9fb629c4189551a2d022fa330f9573f3",
                                  .test_labels_md5 = "ec29112dd5afa0611ce80d1b7f02629c",
                                  .mean = 0.1307,
                                  .deviation = 0.3081,
                                  .flip = false}) {}
};

}  // namespace

PIPEWRIGHT_DATASET(mnist, Mnist, "MNIST: 28 × 28 grey handwritten digits, 60,000 + 10,000.")

}  // namespace pipewright
