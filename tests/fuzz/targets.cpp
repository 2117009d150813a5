#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/base/error.h"
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

// ---- frame ----

void read_frame(std::span<const std::byte> bytes) {
  const FrameHeader header = read_header(bytes);
  Bytes again(static_cast<std::size_t>(header.bytes()));
  write_header(header, again);
  if (std::memcmp(again.data(), bytes.data(), again.size()) != 0) std::abort();
}

std::vector<Bytes> frames() {
  std::vector<Bytes> all;
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{}, {0}, {3}, {2, 0, 3}, {2, 3, 4, 5}})
    for (const bool raw : {false, true}) {
      FrameHeader header{.codec = codec_tag("none"), .raw = raw, .sizes = sizes};
      header.payload = 4 * header.values();
      Bytes frame(static_cast<std::size_t>(header.bytes() + header.payload));
      write_header(header, frame);
      all.push_back(std::move(frame));
    }
  return all;
}

// ---- payloads, after 8 bytes that say for how many values ----

/// The number of values is believed as far as a decoder would be asked for so many.
std::int64_t values_said(std::span<const std::byte> bytes) {
  if (bytes.size() < 8) throw Error(ErrorKind::Data, "too short to fuzz");
  std::int64_t n;
  std::memcpy(&n, bytes.data(), 8);
  return n & ((std::int64_t{1} << 38) - 1);
}

Bytes with_values(std::int64_t n, const Bytes& payload) {
  Bytes all(8 + payload.size());
  std::memcpy(all.data(), &n, 8);
  std::memcpy(all.data() + 8, payload.data(), payload.size());
  return all;
}

void read_sort_quantization(std::span<const std::byte> bytes) {
  const std::int64_t n = values_said(bytes);
  const std::span<const std::byte> payload = bytes.subspan(8);
  read_quantized(payload, n);  // only then is there memory for n values
  std::vector<float> values(static_cast<std::size_t>(n));
  decode_quantized(payload, values);
}

std::vector<Bytes> sort_quantizations() {
  std::vector<Bytes> all;
  for (const auto& [bits, split] :
       {std::pair{6, 2}, {2, 1}, {9, 3}, {12, 4}, {1, 0}, {4, 6}, {7, 8}})
    for (const bool container : {false, true})
      for (const std::int64_t n : {0, 1, 7, 100, 5000}) {
        const SortQuantization settings{.bits = bits, .split = split, .container = container};
        std::vector<float> values(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>((i * 7919) % 1009) - 500;
        Bytes payload(static_cast<std::size_t>(settings.payload_bytes(n)));
        encode_groups(settings, *find_groups(settings, values), values, payload);
        all.push_back(with_values(n, payload));
      }
  return all;
}

void read_zero_map(std::span<const std::byte> bytes) {
  const std::int64_t n = values_said(bytes);
  const std::span<const std::byte> map = bytes.subspan(8);
  const std::int64_t count = others_of(map, n);
  const std::vector<float> others(static_cast<std::size_t>(count), 1.0f);
  std::vector<float> values(static_cast<std::size_t>(n));
  put_zeros_in(map, others, values);
}

std::vector<Bytes> zero_maps() {
  std::vector<Bytes> all;
  for (const std::int64_t n : {0, 1, 8, 63, 64, 65, 1000}) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 1.0f : 0.0f;
    Bytes map(static_cast<std::size_t>(zero_map_bytes(n)));
    take_zeros_out(values, map);
    all.push_back(with_values(n, map));
  }
  return all;
}

// ---- the loops of other codecs, after the checks of their decoders ----

/// n codes of as many bits as one byte says, and what `uniform` makes of them.
void read_fields(std::span<const std::byte> bytes) {
  const std::int64_t n = values_said(bytes);
  if (bytes.size() < 9) throw Error(ErrorKind::Data, "no number of bits");
  const int bits = std::to_integer<int>(bytes[8]);
  const std::span<const std::byte> fields = bytes.subspan(9);
  if (bits < 1 || bits > kMostBits || std::ssize(fields) != packed_bytes(n, bits))
    throw Error(ErrorKind::Data, "another number of bytes");
  std::vector<float> values(static_cast<std::size_t>(n));
  BitReader reader(fields, bits);
  reader.read(values.size(), [&](std::size_t first, std::span<const std::uint16_t> codes) {
    for (const std::uint16_t code : codes)
      if (code >> bits != 0) std::abort();
    const std::span into = std::span(values).subspan(first, codes.size());
    dequantize(codes, {.base = -1, .step = 0.5f}, {.top = (1 << bits) - 1}, into);
    sign_values(codes, 2, into);
  });
}

std::vector<Bytes> fields() {
  std::vector<Bytes> all;
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const std::int64_t n : {0, 1, 7, 2048, 5000}) {
      std::vector<std::uint16_t> codes(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<std::uint16_t>((i * 7919) & ((1u << bits) - 1));
      Bytes payload(1 + static_cast<std::size_t>(packed_bytes(n, bits)), std::byte(bits));
      pack(codes, bits, std::span(payload).subspan(1));
      all.push_back(with_values(n, payload));
    }
  return all;
}

/// Values and their positions, of which there are as many as fit; or, with an odd first byte, the
/// values and a bit for every place.
void read_sparse(std::span<const std::byte> bytes) {
  constexpr std::int64_t kMost = 1 << 24;  // of this codec bytes do not say how many values
  const std::int64_t n = values_said(bytes) % kMost;
  if (bytes.size() < 9) throw Error(ErrorKind::Data, "no kind");
  const bool map = std::to_integer<int>(bytes[8]) % 2 != 0;
  const std::span<const std::byte> payload = bytes.subspan(9);
  const std::size_t bits = map ? static_cast<std::size_t>(packed_bytes(n, 1)) : 0;
  if (payload.size() < bits) throw Error(ErrorKind::Data, "no map");
  const std::size_t k = (payload.size() - bits) / (map ? 4 : 8);
  std::vector<float> values(k), x(static_cast<std::size_t>(n));
  if (k > 0) std::memcpy(values.data(), payload.data(), 4 * k);
  bool fits = false;
  if (map) {
    fits = scatter(values, payload.subspan(4 * k, bits), x);
  } else {
    std::vector<std::uint32_t> positions(k);
    if (k > 0) std::memcpy(positions.data(), payload.data() + 4 * k, 4 * k);
    fits = scatter(values, positions, x);
  }
  if (!fits) throw Error(ErrorKind::Data, "positions that are none");
}

std::vector<Bytes> sparse() {
  std::vector<Bytes> all;
  for (const std::int64_t n : {1, 8, 100, 5000})
    for (const bool map : {false, true}) {
      std::vector<float> x(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919) % 1009) - 500;
      const std::size_t k = x.size() / 4 + 1;
      std::vector<float> values(k);
      std::vector<std::uint32_t> positions(k);
      Bytes bits(static_cast<std::size_t>(packed_bytes(n, 1)));
      const Chosen chosen = choose_largest(x, k);
      Bytes payload(1 + 4 * k + (map ? bits.size() : 4 * k), std::byte(map));
      if (map)
        gather_chosen(x, chosen, values, bits);
      else
        gather_chosen(x, chosen, values, positions);
      std::memcpy(payload.data() + 1, values.data(), 4 * k);
      if (map)
        std::memcpy(payload.data() + 1 + 4 * k, bits.data(), bits.size());
      else
        std::memcpy(payload.data() + 1 + 4 * k, positions.data(), 4 * k);
      all.push_back(with_values(n, payload));
    }
  return all;
}

constexpr Target kTargets[] = {
    {"fields", read_fields, fields},
    {"sparse", read_sparse, sparse},
    {"frame", read_frame, frames},
    {"sort_quantization", read_sort_quantization, sort_quantizations},
    {"zero_map", read_zero_map, zero_maps},
};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

bool takes(const Target& target, std::span<const std::byte> bytes) {
  try {
    target.read(bytes);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Data) return false;
    std::fprintf(stderr, "%s threw another error: %s\n", target.name, error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s threw: %s\n", target.name, error.what());
  }
  std::abort();
}

}  // namespace pipewright::fuzz

/// For libFuzzer, where a compiler has it: the first byte says which target.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipewright::fuzz;
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  takes(targets()[data[0] % targets().size()], bytes.subspan(1));
  return 0;
}
