// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/packing.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostInflated = 1 << 18;

Bytef* zlib_bytes(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

std::string little_endian(std::uint64_t number, std::size_t width) {
  std::string bytes;
  for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t number = 0;
  for (std::size_t i = width; i > 0; --i)
    number = number << 8 | static_cast<std::uint8_t>(bytes[at + i - 1]);
  return number;
}

void put_octal(std::string& block, std::size_t at, std::size_t width, std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", static_cast<int>(width - 1),
                static_cast<unsigned long long>(number));
  block.replace(at, width - 1, std::string_view(text).substr(0, width - 1));
}

void put_checksum(std::string& bytes, std::size_t block) {
  std::uint64_t sum = 8 * ' ';
  for (std::size_t i = 0; i < kBlock; ++i)
    if (i < 148 || i >= 156) sum += static_cast<std::uint8_t>(bytes[block + i]);
  put_octal(bytes, block + 148, 7, sum);
  bytes[block + 154] = '\0';
  bytes[block + 155] = ' ';
}

std::string tar_member(char type, std::string_view name, std::string_view content) {
  std::string member(kBlock, '\0');
  member.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
  put_octal(member, 100, 8, 0644);
  put_octal(member, 108, 8, 0);
  put_octal(member, 116, 8, 0);
  put_octal(member, 124, 12, content.size());
  put_octal(member, 136, 12, 0);
  member[156] = type;
  member.replace(257, 8, std::string_view("ustar  \0", 8));  // GNU's
  put_checksum(member, 0);
  member += content;
  member.resize((member.size() + kBlock - 1) / kBlock * kBlock);
  return member;
}

}  // namespace

std::uint32_t crc32_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32(0, zlib_bytes(bytes), static_cast<uInt>(bytes.size())));
}

std::string packed_as_tar(const std::map<std::string, std::string>& files) {
  std::string bytes;
  for (const auto& [name, content] : files) {
    const std::string path = "packed/" + name;
    if (path.size() >= 100) bytes += tar_member('L', "././@LongLink", path + '\0');
    bytes += tar_member('0', path, content);
  }
  bytes.resize(bytes.size() + 2 * kBlock);
  return bytes;
}

std::string packed_as_zip(const std::map<std::string, std::string>& files) {
  std::string bytes, directory;
  for (const auto& [name, content] : files) {
    const std::string path = "packed/" + name;
    // Version, flags, method (stored), time and date, checksum, sizes, lengths of name and extra.
    const std::string fields = little_endian(10, 2) + little_endian(0, 4) + little_endian(0, 4) +
                               little_endian(crc32_of(content), 4) +
                               little_endian(content.size(), 4) + little_endian(content.size(), 4) +
                               little_endian(path.size(), 2) + little_endian(0, 2);
    // Length of the comment, disk, attributes within and without, place of the member.
    directory += "PK\x01\x02" + little_endian(10, 2) + fields + std::string(10, '\0') +
                 little_endian(bytes.size(), 4) + path;
    bytes += "PK\x03\x04" + fields + path + content;
  }
  const std::string count = little_endian(files.size(), 2);
  return bytes + directory + "PK\x05\x06" + little_endian(0, 4) + count + count +
         little_endian(directory.size(), 4) + little_endian(bytes.size(), 4) + little_endian(0, 2);
}

std::string packed_as_gzip(std::string_view content) {
  z_stream stream{};
  require(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = zlib_bytes(content);
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = zlib_bytes(packed);
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  require(result == Z_STREAM_END, "zlib does not pack");
  return packed;
}

Inflated inflated(std::string_view deflated) {
  Inflated all;
  z_stream stream{};
  require(inflateInit2(&stream, -15) == Z_OK, "zlib");
  all.content.resize(kMostInflated);
  stream.next_in = zlib_bytes(deflated);
  stream.avail_in = static_cast<uInt>(deflated.size());
  stream.next_out = zlib_bytes(all.content);
  stream.avail_out = static_cast<uInt>(all.content.size());
  all.ended = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  all.used = deflated.size() - stream.avail_in;
  all.content.resize(all.content.size() - stream.avail_out);
  inflateEnd(&stream);
  return all;
}

void mend_tar(std::string& bytes) {
  for (std::size_t at = 0; at + kBlock <= bytes.size();) {
    if (bytes.find_first_not_of('\0', at) >= at + kBlock) return;  // the end
    put_checksum(bytes, at);
    std::uint64_t size = 0;
    std::from_chars(bytes.data() + at + 124, bytes.data() + at + 136, size, 8);
    if (size > bytes.size()) return;
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
}

void mend_zip(std::string& bytes) {
  constexpr std::size_t kRecord = 46, kHeader = 30;
  for (std::size_t at = bytes.find("PK\x01\x02"); at != std::string::npos;
       at = bytes.find("PK\x01\x02", at + 1)) {
    if (at + kRecord > bytes.size()) return;
    const std::uint64_t header = number_at(bytes, at + 42, 4);
    if (header + kHeader > bytes.size()) continue;
    const std::uint64_t begin =
        header + kHeader + number_at(bytes, header + 26, 2) + number_at(bytes, header + 28, 2);
    const std::uint64_t packed = number_at(bytes, at + 20, 4);
    if (begin > bytes.size() || packed > bytes.size() - begin) continue;
    const std::string_view data = std::string_view(bytes).substr(begin, packed);
    const std::string content =
        number_at(bytes, at + 10, 2) == 8 ? inflated(data).content : std::string(data);
    const std::string checksum = little_endian(crc32_of(content), 4),
                      size = little_endian(content.size(), 4);
    bytes.replace(at + 16, 4, checksum).replace(at + 24, 4, size);
    bytes.replace(header + 14, 4, checksum).replace(header + 22, 4, size);
  }
}

/// Of the first member, whose header has no more than a name.
void mend_gzip(std::string& bytes) {
  constexpr std::size_t kHeader = 10;
  if (bytes.size() < kHeader || !bytes.starts_with("\x1f\x8b")) return;
  std::size_t begin = kHeader;
  if ((bytes[3] & 8) != 0) begin = std::min(bytes.find('\0', begin), bytes.size() - 1) + 1;
  const Inflated member = inflated(std::string_view(bytes).substr(begin));
  const std::size_t end = begin + member.used;
  if (!member.ended || end + 8 > bytes.size()) return;
  bytes.replace(
      end, 8, little_endian(crc32_of(member.content), 4) + little_endian(member.content.size(), 4));
}

}  // namespace pipewright::fuzz
