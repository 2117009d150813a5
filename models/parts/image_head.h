// SPDX-License-Identifier: Apache-2.0
/// Auxiliary heads of image models, written as words joined by "_" and read from left to right:
///   convN  3×3 convolution to N channels, padding 1, with bias; then ReLU
///   bn     batch norm, then ReLU; the ReLU directly before it is left out
///   gbpl   global average pool, flatten
///   fc     linear to the classes; last, and only after gbpl
/// Interlocking backpropagation uses "conv128_bn_conv64_bn_gbpl_fc".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "core/nn/layer.h"

namespace pipewright {

class ImageHead {
 public:
  /// Reads the option `aux_head`. If it is invalid, the problem is recorded and `fallback` is used.
  ImageHead(Options& options, const std::string& fallback);

  /// The head on [batch, channels, height, width]. Parameters "conv1.weight", "conv1.bias",
  /// "bn1.weight", …, "fc.weight", "fc.bias". Convolution weights are Kaiming-normal (fan out).
  LayerPtr on_image(std::int64_t channels, std::int64_t classes) const;
  /// The head on [batch, features]: "fc" alone.
  static LayerPtr on_features(std::int64_t features, std::int64_t classes);

 private:
  struct Word {
    enum class Kind : std::uint8_t { Convolution, BatchNorm, Pool, Linear } kind;
    std::int64_t channels = 0;  ///< of a Convolution
  };
  /// Parses `text` into words. If it is invalid, `problem` is set.
  static std::vector<Word> parsed(const std::string& text, std::string& problem);

  std::vector<Word> words_;
};

}  // namespace pipewright
