// SPDX-License-Identifier: Apache-2.0
/// The loops of sort quantization: from values to codes and back, for given groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/codecs/loops/sort_quantization_code.h"

namespace pipewright {

/// The groups in the layout that the loops need.
class GroupTable {
 public:
  GroupTable(const SortQuantization& settings, std::span<const QuantizedGroup> groups);

  /// Encodes finite values into as many codes. `flip` has the bits to invert in each code.
  void quantise(std::span<const float> values, unsigned flip, std::span<std::uint8_t> codes) const;
  void quantise(std::span<const float> values, unsigned flip, std::span<std::uint16_t> codes) const;
  /// Decodes codes, which must be below 2^(Q+S) after flipping.
  void dequantise(std::span<const std::uint8_t> codes, unsigned flip,
                  std::span<float> values) const;
  void dequantise(std::span<const std::uint16_t> codes, unsigned flip,
                  std::span<float> values) const;

 private:
  int bits_, split_;
  std::vector<float> low_, step_, high_;
  std::vector<float> decoded_;  ///< value of every code, if there are many groups but few codes
};

}  // namespace pipewright
