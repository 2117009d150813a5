#include "datasets/archives/zip.h"

#include <zlib.h>

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr std::size_t kEndRecord = 22, kDirectoryRecord = 46, kFileRecord = 30;
constexpr std::uint64_t kLongestComment = 65535, kElsewhere = 0xffffffff;
constexpr std::uint64_t kStored = 0, kDeflated = 8;

std::uint64_t little_endian(std::string_view bytes, std::size_t position, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i > 0; --i)
    value = value << 8 | static_cast<std::uint8_t>(bytes[position + i - 1]);
  return value;
}

/// Unpacks raw deflate data; false unless they fill `out` exactly.
bool unpack(std::string& packed, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return whole;
}

}  // namespace

bool is_zip(const std::filesystem::path& path) {
  char first[4] = {};
  InputFile(path).read(first, 4);
  const std::string_view bytes(first, 4);
  return bytes == "PK\x03\x04" || bytes == "PK\x05\x06";
}

ZipReader::ZipReader(const std::filesystem::path& archive) : archive_(archive), file_(archive) {
  read_directory();
}

void ZipReader::fail(std::string_view what) const {
  throw Error(ErrorKind::Data, std::string(what), archive_.string());
}

std::string ZipReader::bytes_at(std::uint64_t offset, std::uint64_t count) {
  const std::uint64_t size = file_.size();
  if (offset > size || count > size - offset) fail("damaged or truncated zip archive");
  std::string bytes(count, '\0');
  if (file_.read_at(offset, bytes.data(), count) < count) fail("the archive has become shorter");
  return bytes;
}

/// The directory is found from the end of the archive, where a comment may follow. Its number of
/// files is not looked at: it holds 16 bits, and Tiny-ImageNet has 120,000.
void ZipReader::read_directory() {
  const std::uint64_t tail = std::min(file_.size(), kEndRecord + kLongestComment);
  const std::string bytes = bytes_at(file_.size() - tail, tail);
  const std::size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string::npos || bytes.size() - end < kEndRecord)
    fail("no zip archive, or truncated: it has no directory");
  const std::uint64_t size = little_endian(bytes, end + 12, 4);
  const std::uint64_t offset = little_endian(bytes, end + 16, 4);
  if (offset == kElsewhere) fail("zip archives of 4 GiB or more cannot be read");
  directory_ = bytes_at(offset, size);
}

bool ZipReader::next() {
  do {
    if (position_ == directory_.size()) return false;
    const std::string_view record = std::string_view(directory_).substr(position_);
    if (record.size() < kDirectoryRecord || !record.starts_with("PK\x01\x02"))
      fail(concat("damaged zip archive: no directory record after '", name_, "'"));
    const std::uint64_t name = little_endian(record, 28, 2);
    const std::uint64_t all =
        kDirectoryRecord + name + little_endian(record, 30, 2) + little_endian(record, 32, 2);
    if (all > record.size()) fail("damaged zip archive: its directory ends too early");
    name_ = std::string(record.substr(kDirectoryRecord, name));
    if ((little_endian(record, 8, 2) & 1) != 0) fail(concat("member '", name_, "' is encrypted"));
    method_ = little_endian(record, 10, 2);
    checksum_ = little_endian(record, 16, 4);
    packed_size_ = little_endian(record, 20, 4);
    size_ = little_endian(record, 24, 4);
    header_offset_ = little_endian(record, 42, 4);
    position_ += all;
  } while (name_.ends_with('/'));
  return true;
}

std::string ZipReader::content(std::uint64_t limit_in_bytes) {
  if (size_ > limit_in_bytes)
    fail(concat("member '", name_, "' has ", size_, " bytes, at most ", limit_in_bytes,
                " are read"));
  if (method_ != kStored && method_ != kDeflated)
    fail(concat("member '", name_, "' is packed by method ", method_, "; 0 and 8 can be read"));
  const std::string header = bytes_at(header_offset_, kFileRecord);
  const std::uint64_t begin =
      header_offset_ + kFileRecord + little_endian(header, 26, 2) + little_endian(header, 28, 2);
  std::string packed = bytes_at(begin, packed_size_), bytes(size_, '\0');
  const bool whole = method_ == kStored ? packed.size() == size_ : unpack(packed, bytes);
  if (method_ == kStored) bytes = std::move(packed);
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  if (!whole || !header.starts_with("PK\x03\x04") || sum != checksum_)
    fail(concat("damaged zip archive: member '", name_, "' does not unpack to what it was"));
  return bytes;
}

}  // namespace pipewright
