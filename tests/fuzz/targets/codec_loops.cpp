// SPDX-License-Identifier: Apache-2.0
// The loops of codecs that read what crossed a wire, without LibTorch. The first byte of an input
// says which of them reads the rest.
//
// What `mx`, `fp8` and `k_means` do with their codes is not among them: each looks a code up in a
// table that has an entry for every code there is, so no payload can steer a place in memory; and
// `none`, `fp16`, `bf16`, `svd` and `power_iteration` read numbers only. The target `codecs` has
// them all.
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "core/base/random.h"
#include "core/codecs/frame.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/sign_loops.h"
#include "core/codecs/loops/sort_quantization_code.h"
#include "core/codecs/loops/sparse_loops.h"
#include "core/codecs/loops/uniform_loops.h"
#include "core/codecs/loops/zero_map.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

using Bytes = std::span<const std::byte>;

template <class Number>
std::string hash_of(const std::vector<Number>& values) {
  const std::span bytes = std::as_bytes(std::span(values));
  return std::to_string(stable_hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

template <class Number>
std::vector<Number> numbers_in(Bytes bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

/// A tensor of the header's sizes can be made; written again, it is the same bytes.
std::string read_frame(Bytes bytes) {
  const FrameHeader header = read_header(bytes);
  for (const std::int64_t size : header.sizes) require(size >= 0, "a size is below zero");
  require(header.values() * size_of(header.type) <= kLargestFrame, "the tensor is too large");
  std::vector<std::byte> again(static_cast<std::size_t>(header.bytes()));
  write_header(header, again);
  require(std::memcmp(again.data(), bytes.data(), again.size()) == 0, "the header is another one");
  return concat("frame of ", header.values(), " values");
}

// ---- payloads, after 8 bytes that say for how many values ----

/// The number of values is believed as far as a decoder would be asked for so many.
std::int64_t values_said(Bytes bytes) {
  if (bytes.size() < 8) throw Error(ErrorKind::Data, "too short to fuzz");
  return numbers_in<std::int64_t>(bytes.first(8))[0] & ((std::int64_t{1} << 38) - 1);
}

std::string read_sort_quantization(Bytes bytes) {
  const std::int64_t n = values_said(bytes);
  const Bytes payload = bytes.subspan(8);
  const SortQuantization settings = read_quantized(payload, n);  // only then is there memory for n
  require(settings.payload_bytes(n) == std::ssize(payload), "the payload has another size");
  std::vector<float> values(static_cast<std::size_t>(n));
  decode_quantized(payload, values);
  return hash_of(values);
}

/// Taken out of the values again, the map is the same bytes.
std::string read_zero_map(Bytes bytes) {
  const std::int64_t n = values_said(bytes);
  const Bytes map = bytes.subspan(8);
  const std::vector<float> others(static_cast<std::size_t>(others_of(map, n)), 1.0f);
  std::vector<float> values(static_cast<std::size_t>(n));
  put_zeros_in(map, others, values);
  std::vector<std::byte> again(static_cast<std::size_t>(zero_map_bytes(n)));
  require(take_zeros_out(values, again) == others, "other values are not zero");
  require(std::memcmp(again.data(), map.data(), again.size()) == 0, "the map is another one");
  return hash_of(values);
}

/// n codes of as many bits as one byte says, and what `uniform` and `sign` make of them. Packed
/// again, the codes are the same bytes, but for what fills the last one.
std::string read_fields(Bytes bytes) {
  const std::int64_t n = values_said(bytes);
  if (bytes.size() < 9) throw Error(ErrorKind::Data, "no number of bits");
  const int bits = std::to_integer<int>(bytes[8]);
  const Bytes fields = bytes.subspan(9);
  if (bits < 1 || bits > kMostBits || std::ssize(fields) != packed_bytes(n, bits))
    throw Error(ErrorKind::Data, "another number of bytes");
  std::vector<float> values(static_cast<std::size_t>(n));
  std::vector<std::uint16_t> all;
  BitReader reader(fields, bits);
  reader.read(values.size(), [&](std::size_t first, std::span<const std::uint16_t> codes) {
    const std::span into = std::span(values).subspan(first, codes.size());
    dequantize(codes, {.base = -1, .step = 0.5f}, {.top = (1 << bits) - 1}, into);
    sign_values(codes, 2, into);
    all.insert(all.end(), codes.begin(), codes.end());
  });
  for (const std::uint16_t code : all) require(code >> bits == 0, "a code has too many bits");
  std::vector<std::byte> again(fields.size());
  pack(all, bits, again);
  const auto whole = static_cast<std::size_t>(n / 8 * bits);
  require(whole == 0 || std::memcmp(again.data(), fields.data(), whole) == 0,
          "packed again, the codes are other bytes");
  return hash_of(all);
}

/// A second reading of positions: ascending, and inside.
bool positions_fit(std::span<const std::uint32_t> positions, std::size_t n) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (positions[i] >= n || (i > 0 && positions[i] <= positions[i - 1])) return false;
  return true;
}

/// Values and their positions, of which there are as many as fit; or, with an odd first byte, the
/// values and a bit for every place.
std::string read_sparse(Bytes bytes) {
  constexpr std::int64_t kMost = 1 << 16;  // of this codec bytes do not say how many values
  const std::int64_t n = values_said(bytes) % kMost;
  if (bytes.size() < 9) throw Error(ErrorKind::Data, "no kind");
  const bool map = std::to_integer<int>(bytes[8]) % 2 != 0;
  const Bytes payload = bytes.subspan(9);
  const std::size_t bits = map ? static_cast<std::size_t>(packed_bytes(n, 1)) : 0;
  if (payload.size() < bits) throw Error(ErrorKind::Data, "no map");
  const std::size_t k = (payload.size() - bits) / (map ? 4 : 8);
  const auto values = numbers_in<float>(payload.first(4 * k));
  std::vector<float> x(static_cast<std::size_t>(n));
  std::vector<std::uint32_t> positions;
  bool fits = false;
  if (map) {
    const Bytes places = payload.subspan(4 * k, bits);
    for (std::uint32_t i = 0; i < 8 * bits; ++i)
      if ((std::to_integer<unsigned>(places[i / 8]) >> (i % 8) & 1) != 0) positions.push_back(i);
    fits = scatter(values, places, x);
    require(fits == (positions.size() == k && positions_fit(positions, x.size())),
            "the map is judged otherwise than its bits");
  } else {
    positions = numbers_in<std::uint32_t>(payload.subspan(4 * k, 4 * k));
    fits = scatter(values, positions, x);
    require(fits == positions_fit(positions, x.size()), "positions are judged otherwise");
  }
  if (!fits) throw Error(ErrorKind::Data, "positions that are none");
  for (std::size_t i = 0; i < k; ++i) {
    require(bits_of(x[positions[i]]) == bits_of(values[i]), "a value is at another place");
    x[positions[i]] = 0;
  }
  for (const float rest : x) require(bits_of(rest) == 0, "a value came from nowhere");
  return hash_of(positions);
}

constexpr std::array kReaders{read_frame, read_sort_quantization, read_zero_map, read_fields,
                              read_sparse};

std::string read(std::string_view bytes) {
  if (bytes.empty()) throw Error(ErrorKind::Data, "names no reader");
  const std::size_t reader = static_cast<std::uint8_t>(bytes[0]) % kReaders.size();
  return kReaders[reader](std::as_bytes(std::span(bytes.substr(1))));
}

/// A bit can be a value of 4 bytes with a code of 2 bytes.
std::size_t most_memory(std::string_view bytes) {
  return (1 << 20) + 8 * (4 + 2) * 4 * bytes.size();
}

}  // namespace

const Target kTarget{
    .read = read, .most_memory = most_memory, .most_bytes = 8192, .rounds = 10'000};

}  // namespace pipewright::fuzz
