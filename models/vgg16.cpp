// SPDX-License-Identifier: Apache-2.0
/// VGG-16 (Simonyan and Zisserman, 2015, configuration D) in the two CIFAR forms that pipeline
/// papers train: `classifier` without batch norm (SpecTrain; 134.3 M parameters) and `pool_linear`
/// with batch norm (PipeOptim; 14.8 M). One layer = convolution (+ batch norm) + ReLU (+ pool), or
/// one linear layer.
#include <vector>

#include "core/nn/layers.h"
#include "models/parts/image_model.h"

namespace pipewright {
namespace {

struct VggConvolution {
  const char* name;
  std::int64_t channels;
  bool pool = false;
};
constexpr VggConvolution kVggConvolutions[] = {
    {"conv1_1", 64},  {"conv1_2", 64, true},                           //
    {"conv2_1", 128}, {"conv2_2", 128, true},                          //
    {"conv3_1", 256}, {"conv3_2", 256},       {"conv3_3", 256, true},  //
    {"conv4_1", 512}, {"conv4_2", 512},       {"conv4_3", 512, true},  //
    {"conv5_1", 512}, {"conv5_2", 512},       {"conv5_3", 512, true}};
constexpr std::int64_t kVggHidden = 4096;  ///< width of the classifier's hidden layers
constexpr std::int64_t kVggPooledSize =
    7;  ///< of the classifier's input map, as for 224×224 images
constexpr double kLinearStd = 0.01;

class Vgg16 final : public ImageModel {
 public:
  explicit Vgg16(Options& options)
      : ImageModel(options, 32, "gbpl_fc"),
        batch_norm_(
            options.flag("batch_norm", true, "Whether batch norm follows every convolution.")),
        classifier_(
            options.choice("head", {"pool_linear", "classifier"}, "pool_linear",
                           "Head of the model. pool_linear: global average pool and one "
                           "linear layer; classifier: the original three linear layers with "
                           "dropout 0.5.") == "classifier") {}

  std::vector<LayerPtr> layers() const override {
    std::vector<LayerPtr> all;
    std::int64_t in = channels();
    for (const VggConvolution& unit : kVggConvolutions) {
      const std::int64_t out = scaled(unit.channels);
      all.push_back(convolution_unit(unit.name, in, out,
                                     {.batch_norm = batch_norm_, .pool = unit.pool ? 2 : 0}));
      in = out;
    }
    if (!classifier_) {
      all.push_back(pooled_classifier("fc1", in, classes(), kLinearStd));
      return all;
    }
    const std::int64_t hidden = scaled(kVggHidden);
    const auto dense = [](std::int64_t from, std::int64_t to) {
      return linear(from, to,
                    {.init_std = kLinearStd, .activation = Activation::Relu, .flatten = true});
    };
    all.push_back(sequence({{"", average_pool_to(kVggPooledSize)},
                            {"", dense(in * kVggPooledSize * kVggPooledSize, hidden)},
                            {"dropout", dropout(0.5)}}));
    all.back()->set_name("fc1");
    all.push_back(sequence({{"", dense(hidden, hidden)}, {"dropout", dropout(0.5)}}));
    all.back()->set_name("fc2");
    all.push_back(linear(hidden, classes(), {.init_std = kLinearStd}));
    all.back()->set_name("fc3");
    return all;
  }

  /// For `classifier` SpecTrain's cuts. For `pool_linear` PipeOptim's 4 stages, except that the
  /// pools behind conv3_3 and conv4_3 end a stage here and begin the next one there; 2 stages are
  /// those 4 in pairs.
  std::vector<std::int64_t> published_balance(int stages) const override {
    switch (stages) {
      case 2:
        return classifier_ ? std::vector<std::int64_t>{4, 12} : std::vector<std::int64_t>{7, 7};
      case 4:
        return classifier_ ? std::vector<std::int64_t>{2, 3, 5, 6}
                           : std::vector<std::int64_t>{2, 5, 3, 4};
      case 8:
        if (classifier_) return {1, 1, 1, 2, 2, 2, 3, 4};
        return {};
      case 16:
        if (classifier_) return std::vector<std::int64_t>(16, 1);
        return {};
      default: return {};
    }
  }

 private:
  Output output(std::size_t layer) const override {
    if (layer < std::size(kVggConvolutions)) return {scaled(kVggConvolutions[layer].channels)};
    const bool hidden = classifier_ && layer < std::size(kVggConvolutions) + 2;
    return {hidden ? scaled(kVggHidden) : classes(), true};
  }

  bool batch_norm_, classifier_;
};

PIPEWRIGHT_MODEL(vgg16, Vgg16, "VGG-16 for small images, with or without batch norm.");

}  // namespace
}  // namespace pipewright
