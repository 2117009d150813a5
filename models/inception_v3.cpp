// SPDX-License-Identifier: Apache-2.0
/// Inception-v3 (Szegedy et al., 2016) without auxiliary classifier and input transform, otherwise
/// as torchvision defines and PipeOptim trains it: 23,834,568 parameters with 1000 classes. A layer
/// is a convolution or a pool of the stem, an inception block, or the classifier.
///
/// Layers, parameters and buffers have torchvision's names: "Mixed_5b.branch5x5_1.conv.weight".
#include "models/parts/blocks.h"

namespace pipewright {
namespace {

constexpr double kInceptionStd = 0.1;  ///< of all weights except batch norm's
constexpr double kEps = 1e-3;
constexpr double kInceptionDropout = 0.5;

/// Size of a convolution's kernel: one number for a square, otherwise height and width.
struct Kernel {
  Kernel(std::int64_t side) : height(side), width(side) {}  // NOLINT: a number is a square kernel
  Kernel(std::int64_t rows, std::int64_t columns) : height(rows), width(columns) {}
  std::int64_t height, width;
};

class InceptionV3 final : public BlockModel {
 public:
  explicit InceptionV3(Options& options)
      : BlockModel(options, 75, "gbpl_fc", {.size = 299, .classes = 1000}) {}

  /// PipeOptim's 4 stages; 2 stages are those 4 in pairs.
  std::vector<std::int64_t> published_balance(int stages) const override {
    if (stages == 2) return {11, 8};
    if (stages == 4) return {7, 4, 3, 5};
    return {};
  }

 private:
  Blocks blocks() const override {
    return {{"Conv2d_1a_3x3", shrinking(32, 3, 2)},
            {"Conv2d_2a_3x3", shrinking(32, 3)},
            {"Conv2d_2b_3x3", unit(64, 3)},
            {"maxpool1", max_pooled()},
            {"Conv2d_3b_1x1", unit(80, 1)},
            {"Conv2d_4a_3x3", shrinking(192, 3)},
            {"maxpool2", max_pooled()},
            {"Mixed_5b", block_a(32)},
            {"Mixed_5c", block_a(64)},
            {"Mixed_5d", block_a(64)},
            {"Mixed_6a", block_b()},
            {"Mixed_6b", block_c(128)},
            {"Mixed_6c", block_c(160)},
            {"Mixed_6d", block_c(160)},
            {"Mixed_6e", block_c(192)},
            {"Mixed_7a", block_d()},
            {"Mixed_7b", block_e()},
            {"Mixed_7c", block_e()},
            {"fc", classifier_block(classes(), kInceptionDropout, {.weight = kWeight})}};
  }

  Block block_a(std::int64_t pooled) const {
    return branches({{"branch1x1", unit(64, 1)},
                     {"", chain({{"branch5x5_1", unit(48, 1)}, {"branch5x5_2", unit(64, 5)}})},
                     {"", chain({{"branch3x3dbl_1", unit(64, 1)},
                                 {"branch3x3dbl_2", unit(96, 3)},
                                 {"branch3x3dbl_3", unit(96, 3)}})},
                     {"", average_pooled(pooled)}});
  }

  Block block_b() const {
    return branches({{"branch3x3", shrinking(384, 3, 2)},
                     {"", chain({{"branch3x3dbl_1", unit(64, 1)},
                                 {"branch3x3dbl_2", unit(96, 3)},
                                 {"branch3x3dbl_3", shrinking(96, 3, 2)}})},
                     {"", max_pooled()}});
  }

  Block block_c(std::int64_t inner) const {
    return branches({{"branch1x1", unit(192, 1)},
                     {"", chain({{"branch7x7_1", unit(inner, 1)},
                                 {"branch7x7_2", unit(inner, {1, 7})},
                                 {"branch7x7_3", unit(192, {7, 1})}})},
                     {"", chain({{"branch7x7dbl_1", unit(inner, 1)},
                                 {"branch7x7dbl_2", unit(inner, {7, 1})},
                                 {"branch7x7dbl_3", unit(inner, {1, 7})},
                                 {"branch7x7dbl_4", unit(inner, {7, 1})},
                                 {"branch7x7dbl_5", unit(192, {1, 7})}})},
                     {"", average_pooled(192)}});
  }

  Block block_d() const {
    return branches(
        {{"", chain({{"branch3x3_1", unit(192, 1)}, {"branch3x3_2", shrinking(320, 3, 2)}})},
         {"", chain({{"branch7x7x3_1", unit(192, 1)},
                     {"branch7x7x3_2", unit(192, {1, 7})},
                     {"branch7x7x3_3", unit(192, {7, 1})},
                     {"branch7x7x3_4", shrinking(192, 3, 2)}})},
         {"", max_pooled()}});
  }

  Block block_e() const {
    const auto forked = [this](const std::string& left, const std::string& right) {
      return branches({{left, unit(384, {1, 3})}, {right, unit(384, {3, 1})}});
    };
    return branches(
        {{"branch1x1", unit(320, 1)},
         {"", chain({{"branch3x3_1", unit(384, 1)}, {"", forked("branch3x3_2a", "branch3x3_2b")}})},
         {"", chain({{"branch3x3dbl_1", unit(448, 1)},
                     {"branch3x3dbl_2", unit(384, 3)},
                     {"", forked("branch3x3dbl_3a", "branch3x3dbl_3b")}})},
         {"", average_pooled(192)}});
  }

  /// A convolution block that keeps the map's size.
  Block unit(std::int64_t published, Kernel kernel) const {
    return convolution_block(
        scaled(published),
        {.kernel = kernel.height, .kernel_width = kernel.width, .eps = kEps, .weight = kWeight});
  }

  /// A convolution block without padding.
  Block shrinking(std::int64_t published, std::int64_t kernel, std::int64_t stride = 1) const {
    return convolution_block(
        scaled(published),
        {.kernel = kernel, .stride = stride, .pad = false, .eps = kEps, .weight = kWeight});
  }

  Block average_pooled(std::int64_t published) const {
    return chain({{"", keeping_channels([] { return average_pool(3, 1, 1); })},
                  {"branch_pool", unit(published, 1)}});
  }

  static Block max_pooled() {
    return keeping_channels([] { return max_pool(3, 2); });
  }

  static constexpr Initializer kWeight{Initializer::Kind::TruncatedNormal, kInceptionStd};
};

PIPEWRIGHT_MODEL(inception_v3, InceptionV3, "Inception-v3 for large images, 75 x 75 or more.");

}  // namespace
}  // namespace pipewright
