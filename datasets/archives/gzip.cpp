#include "datasets/archives/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "core/base/error.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

/// zlib's state, freed whatever happens.
struct Inflater {
  Inflater() { PIPEWRIGHT_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK); }  // 16: gzip only
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
};

std::string unpacked(const std::filesystem::path& path, std::uint64_t limit_in_bytes) {
  constexpr std::uint64_t kMost = std::numeric_limits<uInt>::max();
  PIPEWRIGHT_CHECK(limit_in_bytes < kMost / 2, limit_in_bytes);
  const auto fail = [&path](const std::string& what) {
    throw Error(ErrorKind::Data, what, path.string());
  };
  // Packing can make data larger: by 5 bytes per 16 KiB, and a header with a name.
  std::string packed = read_file(path, limit_in_bytes + limit_in_bytes / 1024 + 65536);
  if (!packed.starts_with("\x1f\x8b")) fail("is not a gzip file");

  const std::uint64_t room = limit_in_bytes + 1;  // one more, to notice too much
  std::string content(std::min<std::uint64_t>(room, 8 * packed.size() + 1024), '\0');
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(content.size());
  for (;;) {
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::uint64_t unpacked = content.size() - stream.avail_out;
    if (unpacked > limit_in_bytes) fail(concat("unpacks to more than ", limit_in_bytes, " bytes"));
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      if (*stream.next_in != 0x1f) fail(concat(stream.avail_in, " bytes follow the gzip data"));
      inflateReset(&stream);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail(concat("damaged gzip data after ", unpacked, " unpacked bytes (",
                  std::string(stream.msg == nullptr ? "zlib gives no reason" : stream.msg), ")"));
    } else if (stream.avail_out == 0) {
      content.resize(std::min<std::uint64_t>(room, 2 * content.size()));
      stream.next_out = reinterpret_cast<Bytef*>(content.data() + unpacked);
      stream.avail_out = static_cast<uInt>(content.size() - unpacked);
    } else if (stream.avail_in == 0) {
      fail(concat("truncated gzip data: ends after ", unpacked, " unpacked bytes"));
    }
  }
  content.resize(content.size() - stream.avail_out);
  return content;
}

}  // namespace

std::string read_gzip(const std::filesystem::path& path, std::uint64_t limit_in_bytes) try {
  return unpacked(path, limit_in_bytes);
} catch (const std::bad_alloc&) {
  throw Error(ErrorKind::Data, "no memory for what it unpacks to", path.string());
}

}  // namespace pipewright
