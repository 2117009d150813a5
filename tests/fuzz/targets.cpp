#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/base/error.h"
#include "core/codecs/bit_fields.h"
#include "core/codecs/frame.h"
#include "core/codecs/sort_quantization_code.h"
#include "core/codecs/zero_map.h"
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

constexpr Target kTargets[] = {
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
