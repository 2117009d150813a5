// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction to fused multiply-add, because machines must agree bit for bit.
#include "core/codecs/loops/quantization_loops.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/as_size.h"
#include "core/base/vectorised.h"

namespace pipewright {
namespace {

constexpr int kSplitInRegisters = 4;  // with up to 2^4 groups, a value is compared with all limits
constexpr int kMostDecoded = 12;      // greatest width of codes that a table decodes

/// Added to a number in [0, 2^22], it leaves the number rounded half to even in the lowest bits.
constexpr float kRounder = 0x1.8p23f;

struct View {
  int bits;
  const float* low;
  const float* step;
  const float* high;
};

std::int32_t bits_of(float x) {
  return std::bit_cast<std::int32_t>(x);
}
/// All bits set if the condition holds, otherwise none.
std::int32_t mask(bool condition) {
  return condition ? -1 : 0;
}

/// A column of the table, stored as the differences of consecutive entries: entry g is start ^
/// changes[1] ^ … ^ changes[g].
template <int kGroups>
struct Column {
  explicit Column(const float* entries) : start(bits_of(entries[0])) {
    for (int g = 1; g < kGroups; ++g)
      changes[as_size(g)] = bits_of(entries[g]) ^ bits_of(entries[g - 1]);
  }
  std::int32_t start;
  std::array<std::int32_t, as_size(kGroups)> changes{};
};

/// The group of a value, with its least value and divisor.
struct Level {
  float low, divisor;
  std::int32_t group;
};

template <int kGroups>
struct Limits {
  explicit Limits(const View& table) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      low[g] = table.low[g];
      high[g] = table.high[g];
      divisor[g] = table.step[g] > 0 ? table.step[g] : 1;
    }
  }
  std::array<float, as_size(kGroups)> low, high, divisor;
};

// The number of groups is a compile-time constant, so that the tables stay in vector registers.
// Compilers turn conditions over few groups into selects, but over many into branches; masks avoid
// that.
template <int kGroups>
[[gnu::always_inline]] inline Level level_by_choices(const Limits<kGroups>& limits, float x) {
  Level level{limits.low[0], limits.divisor[0], 0};
  for (std::size_t g = 1; g < kGroups; ++g) {
    const bool above = x > limits.high[g - 1];
    level.low = above ? limits.low[g] : level.low;
    level.divisor = above ? limits.divisor[g] : level.divisor;
    level.group += above ? 1 : 0;
  }
  return level;
}

template <int kGroups>
[[gnu::always_inline]] inline Level level_by_masks(const Limits<kGroups>& limits,
                                                   const Column<kGroups>& low,
                                                   const Column<kGroups>& divisor, float x) {
  std::int32_t of = low.start, by = divisor.start, group = 0;
#pragma GCC unroll 16
  for (std::size_t g = 1; g < kGroups; ++g) {
    const std::int32_t above = mask(x > limits.high[g - 1]);
    of ^= above & low.changes[g];
    by ^= above & divisor.changes[g];
    group -= above;
  }
  return {std::bit_cast<float>(of), std::bit_cast<float>(by), group};
}

template <int kSplit, class Code>
[[gnu::always_inline]] inline void quantise_with(const View& table, const float* __restrict values,
                                                 std::size_t n, unsigned flip,
                                                 Code* __restrict codes) {
  constexpr int kGroups = 1 << kSplit;
  const Limits<kGroups> limits(table);
  const Column<kGroups> low(limits.low.data()), divisor(limits.divisor.data());
  const int bits = table.bits;
  const auto most = static_cast<float>((1 << bits) - 1);
  for (std::size_t i = 0; i < n; ++i) {
    const Level group = kSplit < 4 ? level_by_choices<kGroups>(limits, values[i])
                                   : level_by_masks<kGroups>(limits, low, divisor, values[i]);
    const float level = (values[i] - group.low) / group.divisor;
    const float rounded = (level < most ? level : most) + kRounder;
    const std::int32_t q = bits_of(rounded) - bits_of(kRounder);
    codes[i] = static_cast<Code>(static_cast<unsigned>((group.group << bits) + q) ^ flip);
  }
}

template <class Code>
void quantise_by_search(const View& table, std::size_t groups, const float* values, std::size_t n,
                        unsigned flip, Code* codes) {
  const auto most = static_cast<float>((1 << table.bits) - 1);
  for (std::size_t i = 0; i < n; ++i) {
    const float x = values[i];
    std::size_t group = 0;
    for (std::size_t half = groups / 2; half > 0; half /= 2)
      group += x > table.high[group + half - 1] ? half : 0;
    const float step = table.step[group] > 0 ? table.step[group] : 1;
    const float level = std::min((x - table.low[group]) / step, most);
    const std::int32_t q =
        std::bit_cast<std::int32_t>(level + kRounder) - std::bit_cast<std::int32_t>(kRounder);
    codes[i] = static_cast<Code>(
        ((static_cast<unsigned>(group) << table.bits) + static_cast<unsigned>(q)) ^ flip);
  }
}

template <int kSplit, class Code>
[[gnu::always_inline]] inline void dequantise_with(const View& table, const Code* __restrict codes,
                                                   std::size_t n, unsigned flip,
                                                   float* __restrict values) {
  constexpr int kGroups = 1 << kSplit;
  const Column<kGroups> low(table.low), step(table.step);
  const int bits = table.bits;
  const std::int32_t levels = (1 << bits) - 1, flipped = static_cast<std::int32_t>(flip);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t code = codes[i] ^ flipped;
    std::int32_t of = low.start, by = step.start;
#pragma GCC unroll 16
    for (int g = 1; g < kGroups; ++g) {
      const std::int32_t reached = mask(code >= g << bits);
      of ^= reached & low.changes[as_size(g)];
      by ^= reached & step.changes[as_size(g)];
    }
    const auto q = static_cast<float>(code & levels);
    values[i] = std::bit_cast<float>(of) + q * std::bit_cast<float>(by);
  }
}

template <class Code>
void dequantise_by_lookup(const float* decoded, const Code* codes, std::size_t n, unsigned flip,
                          float* values) {
  for (std::size_t i = 0; i < n; ++i) values[i] = decoded[codes[i] ^ flip];
}

template <class Code>
void dequantise_by_group(const View& table, const Code* codes, std::size_t n, unsigned flip,
                         float* values) {
  const unsigned levels = (1u << table.bits) - 1;
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned code = codes[i] ^ flip, group = code >> table.bits;
    values[i] = table.low[group] + static_cast<float>(code & levels) * table.step[group];
  }
}

// One function per type, so that each is compiled for every instruction set.
#define PIPEWRIGHT_QUANTIZATION_LOOPS(Code)                                                \
  PIPEWRIGHT_VECTORISED void quantise_few(const View& t, int split, const float* values,   \
                                          std::size_t n, unsigned flip, Code* codes) {     \
    switch (split) {                                                                       \
      case 0: return quantise_with<0>(t, values, n, flip, codes);                          \
      case 1: return quantise_with<1>(t, values, n, flip, codes);                          \
      case 2: return quantise_with<2>(t, values, n, flip, codes);                          \
      case 3: return quantise_with<3>(t, values, n, flip, codes);                          \
      default: return quantise_with<4>(t, values, n, flip, codes);                         \
    }                                                                                      \
  }                                                                                        \
  PIPEWRIGHT_VECTORISED void dequantise_few(const View& t, int split, const Code* codes,   \
                                            std::size_t n, unsigned flip, float* values) { \
    switch (split) {                                                                       \
      case 0: return dequantise_with<0>(t, codes, n, flip, values);                        \
      case 1: return dequantise_with<1>(t, codes, n, flip, values);                        \
      case 2: return dequantise_with<2>(t, codes, n, flip, values);                        \
      case 3: return dequantise_with<3>(t, codes, n, flip, values);                        \
      default: return dequantise_with<4>(t, codes, n, flip, values);                       \
    }                                                                                      \
  }
PIPEWRIGHT_QUANTIZATION_LOOPS(std::uint8_t)
PIPEWRIGHT_QUANTIZATION_LOOPS(std::uint16_t)
#undef PIPEWRIGHT_QUANTIZATION_LOOPS

template <class Code>
void quantise_all(const View& table, int split, std::span<const float> values, unsigned flip,
                  std::span<Code> codes) {
  if (split <= kSplitInRegisters)
    quantise_few(table, split, values.data(), values.size(), flip, codes.data());
  else
    quantise_by_search(table, std::size_t{1} << split, values.data(), values.size(), flip,
                       codes.data());
}

template <class Code>
void dequantise_all(const View& table, int split, const std::vector<float>& decoded,
                    std::span<const Code> codes, unsigned flip, std::span<float> values) {
  if (split <= kSplitInRegisters)
    dequantise_few(table, split, codes.data(), codes.size(), flip, values.data());
  else if (!decoded.empty())
    dequantise_by_lookup(decoded.data(), codes.data(), codes.size(), flip, values.data());
  else
    dequantise_by_group(table, codes.data(), codes.size(), flip, values.data());
}

}  // namespace

GroupTable::GroupTable(const SortQuantization& settings, std::span<const QuantizedGroup> groups)
    : bits_(settings.bits), split_(settings.split) {
  for (const QuantizedGroup& group : groups) {
    low_.push_back(group.low);
    step_.push_back(group.step);
    high_.push_back(group.high);
  }
  if (split_ > kSplitInRegisters && settings.code_bits() <= kMostDecoded)
    for (const QuantizedGroup& group : groups)
      for (int q = 0; q < 1 << bits_; ++q)
        decoded_.push_back(group.low + static_cast<float>(q) * group.step);
}

void GroupTable::quantise(std::span<const float> values, unsigned flip,
                          std::span<std::uint8_t> codes) const {
  quantise_all({bits_, low_.data(), step_.data(), high_.data()}, split_, values, flip, codes);
}
void GroupTable::quantise(std::span<const float> values, unsigned flip,
                          std::span<std::uint16_t> codes) const {
  quantise_all({bits_, low_.data(), step_.data(), high_.data()}, split_, values, flip, codes);
}
void GroupTable::dequantise(std::span<const std::uint8_t> codes, unsigned flip,
                            std::span<float> values) const {
  dequantise_all({bits_, low_.data(), step_.data(), high_.data()}, split_, decoded_, codes, flip,
                 values);
}
void GroupTable::dequantise(std::span<const std::uint16_t> codes, unsigned flip,
                            std::span<float> values) const {
  dequantise_all({bits_, low_.data(), step_.data(), high_.data()}, split_, decoded_, codes, flip,
                 values);
}

}  // namespace pipewright
