// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction to fused multiply-add, because machines must agree bit for bit.
#include "core/codecs/loops/sort_quantization_code.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/quantization_loops.h"
#include "core/codecs/loops/rank_selection.h"

namespace pipewright {
namespace {

constexpr std::uint8_t kVersion = 1, kContainer = 1;
constexpr std::int64_t kHeader = 8;
constexpr std::int64_t kBlock = 4096;  // values whose codes stay in the first-level cache
constexpr std::int64_t kGrain = 32;    // blocks

std::int64_t padded(std::int64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::Data, "a message of sort_quantization is damaged: " + what);
}

QuantizedGroup group_between(const SortQuantization& settings, float low, float high) {
  return {low, (high - low) / static_cast<float>((1 << settings.bits) - 1), high};
}

bool representable(const SortQuantization& settings, const std::vector<QuantizedGroup>& groups) {
  const auto levels = static_cast<float>((1 << settings.bits) - 1);
  return std::ranges::all_of(groups, [&](const QuantizedGroup& group) {
    return std::isfinite(group.low) && std::isfinite(group.low + levels * group.step);
  });
}

/// Groups whose sizes differ by at most one.
std::vector<QuantizedGroup> exact_groups(const SortQuantization& settings,
                                         std::span<const float> values, const ForPieces& pieces) {
  const std::int64_t n = std::ssize(values), count = settings.groups();
  std::vector<std::int64_t> ranks;
  for (std::int64_t g = 0; g < count; ++g) {
    ranks.push_back(g * (n / count) + std::min(g, n % count));
    ranks.push_back((g + 1) * (n / count) + std::min(g + 1, n % count) - 1);
  }
  const std::vector<float> ends = values_at_ranks(values, ranks, pieces);
  std::vector<QuantizedGroup> groups;
  for (std::size_t i = 0; i < ends.size(); i += 2)
    groups.push_back(group_between(settings, ends[i], ends[i + 1]));
  return groups;
}

/// Groups with the limits of a sample's groups.
std::vector<QuantizedGroup> sampled_groups(const SortQuantization& settings,
                                           std::span<const float> values, const ForPieces& pieces) {
  const std::vector<std::int32_t> sample = sorted_sample(values, kSampleOfLimits);
  const std::int64_t count = settings.groups(), m = std::ssize(sample);
  std::vector<std::int32_t> edges;
  for (std::int64_t g = 1; g < count; ++g) {
    const std::int32_t last = sample[as_size(g * (m / count) + std::min(g, m % count) - 1)];
    edges.push_back(last == std::numeric_limits<std::int32_t>::max() ? last : last + 1);
  }
  std::vector<QuantizedGroup> groups;
  for (const Extremes& extremes : extremes_between(values, edges, pieces)) {
    const bool empty = extremes.least > extremes.most;  // the sample has equal limits
    const float low = empty ? groups.back().high : value_of(extremes.least);
    groups.push_back(group_between(settings, low, empty ? low : value_of(extremes.most)));
  }
  return groups;
}

std::int64_t blocks_of(std::int64_t n) {
  return (n + kBlock - 1) / kBlock;
}

/// Calls work(index of the first value, number of values, bytes of their codes) for every block.
template <class Bytes, class Work>
void for_blocks(std::int64_t n, int field, Bytes codes, const ForPieces& pieces, const Work& work) {
  pieces(blocks_of(n), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t at = block * kBlock, size = std::min(kBlock, n - at);
      work(as_size(at), as_size(size),
           codes.subspan(as_size(at / 8 * field), as_size(packed_bytes(size, field))));
    }
  });
}

template <class Code>
void encode_codes(const SortQuantization& settings, const GroupTable& table,
                  std::span<const float> values, std::span<std::byte> into,
                  const ForPieces& pieces) {
  const int field = settings.field_bits();
  const unsigned flip = settings.flip();
  for_blocks(std::ssize(values), field, into, pieces,
             [&](std::size_t at, std::size_t size, std::span<std::byte> bytes) {
               alignas(64) std::array<Code, kBlock> codes;
               const std::span<Code> block(codes.data(), size);
               table.quantise(values.subspan(at, size), flip, block);
               pack(std::span<const Code>(block), field, bytes);
             });
}

template <class Code>
void decode_codes(const SortQuantization& settings, const GroupTable& table,
                  std::span<const std::byte> from, std::span<float> values,
                  const ForPieces& pieces) {
  const int field = settings.field_bits();
  const unsigned flip = settings.flip();
  const bool checked = field > settings.code_bits();
  for_blocks(std::ssize(values), field, from, pieces,
             [&](std::size_t at, std::size_t size, std::span<const std::byte> bytes) {
               alignas(64) std::array<Code, kBlock> codes;
               const std::span<Code> block(codes.data(), size);
               unpack(bytes, field, block);
               unsigned used = 0;
               for (std::size_t i = 0; checked && i < size; ++i) used |= codes[i];
               if ((used >> settings.code_bits()) != 0) refuse("a code is too large");
               table.dequantise(std::span<const Code>(block), flip, values.subspan(at, size));
             });
}

std::size_t codes_at(const SortQuantization& settings) {
  return as_size(kHeader + 8 * settings.groups());
}

}  // namespace

SortQuantization SortQuantization::for_values(std::int64_t n) const {
  SortQuantization fitting = *this;
  while (fitting.split > 0 && fitting.groups() > n) --fitting.split;
  return fitting;
}

std::int64_t SortQuantization::payload_bytes(std::int64_t n) const {
  const SortQuantization fitting = for_values(n);
  return kHeader + 8 * fitting.groups() + padded(packed_bytes(n, fitting.field_bits()));
}

std::optional<std::vector<QuantizedGroup>> find_groups(const SortQuantization& settings,
                                                       std::span<const float> values,
                                                       const ForPieces& pieces) {
  const SortQuantization fitting = settings.for_values(std::ssize(values));
  if (values.empty()) return std::vector<QuantizedGroup>{{0, 0, 0}};
  auto groups = fitting.samples() ? sampled_groups(fitting, values, pieces)
                                  : exact_groups(fitting, values, pieces);
  if (!representable(fitting, groups)) return {};
  return groups;
}

void encode_groups(const SortQuantization& settings, std::span<const QuantizedGroup> groups,
                   std::span<const float> values, std::span<std::byte> into,
                   const ForPieces& pieces) {
  const SortQuantization fitting = settings.for_values(std::ssize(values));
  const std::array<std::uint8_t, kHeader> header{
      kVersion, static_cast<std::uint8_t>(fitting.bits), static_cast<std::uint8_t>(fitting.split),
      static_cast<std::uint8_t>(fitting.container ? kContainer : 0)};
  std::memcpy(into.data(), header.data(), kHeader);
  for (std::size_t g = 0; g < groups.size(); ++g)
    std::memcpy(into.data() + kHeader + 8 * g, &groups[g], 8);
  const std::span<std::byte> codes = into.subspan(codes_at(fitting));
  if (codes.size() >= 8) std::memset(codes.data() + codes.size() - 8, 0, 8);
  const GroupTable table(fitting, groups);
  if (fitting.field_bits() <= 8)
    encode_codes<std::uint8_t>(fitting, table, values, codes, pieces);
  else
    encode_codes<std::uint16_t>(fitting, table, values, codes, pieces);
}

SortQuantization read_quantized(std::span<const std::byte> payload, std::int64_t n) {
  std::array<std::uint8_t, kHeader> header;
  if (std::ssize(payload) < kHeader) refuse(concat("it has ", payload.size(), " bytes"));
  std::memcpy(header.data(), payload.data(), kHeader);
  if (header[0] != kVersion) refuse(concat("its version is ", header[0], " instead of 1"));
  const SortQuantization said{
      .bits = header[1], .split = header[2], .container = header[3] == kContainer};
  if (header[3] > kContainer ||
      std::ranges::any_of(header.begin() + 4, header.end(), std::identity{}))
    refuse("its flags are unknown");
  if (said.bits < 1 || said.code_bits() > kMostCodeBits)
    refuse(concat("its codes have ", said.bits, " + ", said.split, " bits"));
  if (said.for_values(n).split != said.split)
    refuse(concat("it has ", said.groups(), " groups of ", n, " values"));
  if (said.payload_bytes(n) != std::ssize(payload))
    refuse(concat("it has ", payload.size(), " bytes instead of ", said.payload_bytes(n)));
  return said;
}

void decode_quantized(std::span<const std::byte> payload, std::span<float> into,
                      const ForPieces& pieces) {
  const SortQuantization settings = read_quantized(payload, std::ssize(into));
  std::vector<QuantizedGroup> groups(as_size(settings.groups()));
  for (std::size_t g = 0; g < groups.size(); ++g)
    std::memcpy(&groups[g], payload.data() + kHeader + 8 * g, 8);
  const GroupTable table(settings, groups);
  const std::span<const std::byte> codes = payload.subspan(codes_at(settings));
  const auto used = packed_bytes(std::ssize(into), settings.field_bits());
  if (std::ranges::any_of(codes.subspan(as_size(used)),
                          [](std::byte b) { return b != std::byte{0}; }))
    refuse("its padding is not zero");
  if (settings.field_bits() <= 8)
    decode_codes<std::uint8_t>(settings, table, codes, into, pieces);
  else
    decode_codes<std::uint16_t>(settings, table, codes, into, pieces);
}

}  // namespace pipewright
