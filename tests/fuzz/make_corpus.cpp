// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of codec_loops, by our own encoders, and of jpeg, by libjpeg:
//   fuzz_make_corpus tests/fuzz/corpus
// Equal versions of these write equal files.
#include <cstdio>  // before jpeglib.h, which needs it

#include <jpeglib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/codecs/frame.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/sort_quantization_code.h"
#include "core/codecs/loops/sparse_loops.h"
#include "core/codecs/loops/zero_map.h"

namespace pipewright::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kLargestSeed = 4096;

/// Numbers from -500 to 508 in no order.
float value_at(std::size_t i) {
  return static_cast<float>((i * 7919) % 1009) - 500;
}

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, std::string_view bytes) const {
    if (bytes.size() > kLargestSeed) return;
    std::ofstream out(folder_ / name, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path folder_;
};

// ---- codec_loops: a byte that chooses the reader, and what it reads ----

enum class Reader : char { Frame, SortQuantization, ZeroMap, Fields, Sparse };

std::string seed(Reader reader, const Bytes& bytes) {
  std::string all(1, static_cast<char>(reader));
  all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all;
}

/// The payload of a codec after the number of values that it stands for.
std::string seed(Reader reader, std::int64_t values, const Bytes& payload) {
  Bytes all(8 + payload.size());
  std::memcpy(all.data(), &values, 8);
  std::memcpy(all.data() + 8, payload.data(), payload.size());
  return seed(reader, all);
}

void add_frames(const Corpus& corpus) {
  int number = 0;
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{}, {0}, {3}, {2, 0, 3}, {2, 3, 4, 5}})
    for (const bool raw : {false, true}) {
      FrameHeader header{.codec = codec_tag("none"), .raw = raw, .sizes = sizes};
      header.payload = 4 * header.values();
      Bytes frame(static_cast<std::size_t>(header.bytes() + header.payload));
      write_header(header, frame);
      corpus.add(concat("good-frame-", number++), seed(Reader::Frame, frame));
    }
}

void add_sort_quantization(const Corpus& corpus) {
  for (const auto& [bits, split] :
       {std::pair{6, 2}, {2, 1}, {9, 3}, {12, 4}, {1, 0}, {4, 6}, {7, 8}})
    for (const bool container : {false, true})
      for (const std::int64_t n : {0, 1, 7, 100, 1200}) {
        const SortQuantization settings{.bits = bits, .split = split, .container = container};
        std::vector<float> values(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_at(i);
        Bytes payload(static_cast<std::size_t>(settings.payload_bytes(n)));
        encode_groups(settings, *find_groups(settings, values), values, payload);
        corpus.add(
            concat("good-sort-quantization-", bits, '-', split, container ? "-whole-" : "-", n),
            seed(Reader::SortQuantization, n, payload));
      }
}

void add_zero_maps(const Corpus& corpus) {
  for (const std::int64_t n : {0, 1, 8, 63, 64, 65, 1000}) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 1.0f : 0.0f;
    Bytes map(static_cast<std::size_t>(zero_map_bytes(n)));
    take_zeros_out(values, map);
    corpus.add(concat("good-zero-map-", n), seed(Reader::ZeroMap, n, map));
  }
}

void add_fields(const Corpus& corpus) {
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const std::int64_t n : {0, 7, 2048, 5000}) {
      std::vector<std::uint16_t> codes(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<std::uint16_t>((i * 7919) & ((1u << bits) - 1));
      Bytes payload(1 + static_cast<std::size_t>(packed_bytes(n, bits)), std::byte(bits));
      pack(codes, bits, std::span(payload).subspan(1));
      corpus.add(concat("good-fields-", bits, '-', n), seed(Reader::Fields, n, payload));
    }
}

void add_sparse(const Corpus& corpus) {
  for (const std::int64_t n : {1, 8, 100, 1500})
    for (const bool map : {false, true}) {
      std::vector<float> x(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = value_at(i);
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
      std::memcpy(payload.data() + 1 + 4 * k,
                  map ? static_cast<const void*>(bits.data()) : positions.data(),
                  map ? bits.size() : 4 * k);
      corpus.add(concat("good-sparse-", map ? "map-" : "positions-", n),
                 seed(Reader::Sparse, n, payload));
    }
}

// ---- jpeg ----

struct JpegKind {
  const char* name;
  int components;
  int side;
  bool progressive = false, arithmetic = false;
  unsigned restart = 0;
};

std::string jpeg_of(const JpegKind& kind) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);  // it ends the program
  jpeg_create_compress(&codec);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &out, &size);
  codec.image_width = codec.image_height = static_cast<JDIMENSION>(kind.side);
  codec.input_components = kind.components;
  codec.in_color_space = kind.components == 1   ? JCS_GRAYSCALE
                         : kind.components == 3 ? JCS_RGB
                                                : JCS_CMYK;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, 75, TRUE);
  if (kind.progressive) jpeg_simple_progression(&codec);
  codec.arith_code = kind.arithmetic ? TRUE : FALSE;
  codec.restart_interval = kind.restart;
  jpeg_start_compress(&codec, TRUE);
  std::vector<JSAMPLE> row(static_cast<std::size_t>(kind.side * kind.components));
  for (int y = 0; y < kind.side; ++y) {
    for (std::size_t x = 0; x < row.size(); ++x)
      row[x] = static_cast<JSAMPLE>((x * 11 + static_cast<std::size_t>(y) * 7) % 256);
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&codec, &line, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  std::string bytes(reinterpret_cast<const char*>(out), size);
  std::free(out);
  return bytes;
}

void add_jpegs(const Corpus& corpus) {
  for (const JpegKind& kind :
       {JpegKind{"grey", 1, 9}, JpegKind{"colour", 3, 17}, JpegKind{"cmyk", 4, 8},
        JpegKind{"progressive", 3, 16, true}, JpegKind{"arithmetic", 3, 16, false, true},
        JpegKind{"restarts", 3, 33, false, false, 1}}) {
    const std::string bytes = jpeg_of(kind);
    corpus.add(concat("good-", kind.name), bytes);
    corpus.add(concat("bad-truncated-", kind.name), bytes.substr(0, bytes.size() / 2));
  }
}

void write_all(const std::filesystem::path& folder) {
  const Corpus loops(folder / "codec_loops");
  add_frames(loops);
  add_sort_quantization(loops);
  add_zero_maps(loops);
  add_fields(loops);
  add_sparse(loops);
  add_jpegs(Corpus(folder / "jpeg"));
}

}  // namespace
}  // namespace pipewright::fuzz

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  pipewright::fuzz::write_all(arguments[1]);
  return 0;
}
