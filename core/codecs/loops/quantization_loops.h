/// The loops of sort quantization: from values to codes and back, for groups that are known.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/codecs/loops/sort_quantization_code.h"

namespace pipewright {

/// Groups as the loops want them.
class GroupTable {
 public:
  GroupTable(const SortQuantization& settings, std::span<const QuantizedGroup> groups);

  /// Of finite values; as many codes. `flip` is what is inverted in each.
  void quantise(std::span<const float> values, unsigned flip, std::span<std::uint8_t> codes) const;
  void quantise(std::span<const float> values, unsigned flip, std::span<std::uint16_t> codes) const;
  /// Codes, once flipped, are below 2^(Q+S).
  void dequantise(std::span<const std::uint8_t> codes, unsigned flip,
                  std::span<float> values) const;
  void dequantise(std::span<const std::uint16_t> codes, unsigned flip,
                  std::span<float> values) const;

 private:
  int bits_, split_;
  std::vector<float> low_, step_, high_;
  std::vector<float> decoded_;  ///< of every code, where there are many groups but not many codes
};

}  // namespace pipewright
