/// Fashion-MNIST in its official four idx files: 28 × 28 grey images of 10 kinds of clothing.
#include "datasets/formats/idx_images.h"

namespace pipewright {
namespace {

class FashionMnist final : public IdxImageDataset {
 public:
  explicit FashionMnist(Options& options)
      : IdxImageDataset(options, {.title = "Fashion-MNIST",
                                  .home = "Zalando Research's repository fashion-mnist",
                                  .folder = "~/data/fashion-mnist",
                                  .train_images_md5 = "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                                  .train_labels_md5 = "25c81989df183df01b3e8a0aad5dffbe",
                                  .test_images_md5 = "bef4ecab320f06d8554ea6380940ec79",
                                  .test_labels_md5 = "bb300cfdad3c16e7a12a480ee83cd310",
                                  .mean = 0.2860,
                                  .deviation = 0.3530}) {}
};

}  // namespace

PIPEWRIGHT_DATASET(fashion_mnist, FashionMnist,
                   "Fashion-MNIST: 28 × 28 grey images of 10 classes, 60,000 + 10,000.")

}  // namespace pipewright
