// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "core/base/error_at.h"
#include "core/system/input_file.h"

namespace pipewright {
namespace {

constexpr std::size_t kGzipPiece = 1 << 17;

}  // namespace

struct GzipStream::State {
  explicit State(const std::filesystem::path& name) : path(name), file(name), piece(kGzipPiece) {
    refill();
    const std::string_view first(piece.data(), stream.avail_in);
    packed = first.starts_with("\x1f\x8b");
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();  // 16: gzip only
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[noreturn]] void fail(const std::string& what) const { throw data_error(path, what); }

  /// Reads the next piece of the file. Returns false at its end.
  bool refill() {
    const std::uint64_t got = file.read(piece.data(), piece.size());
    taken += got;
    stream.next_in = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  std::uint64_t copy(char* out, std::uint64_t count) {
    const std::uint64_t part = std::min<std::uint64_t>(count, stream.avail_in);
    std::memcpy(out, stream.next_in, part);
    stream.next_in += part;
    stream.avail_in -= static_cast<uInt>(part);
    return part;
  }

  std::uint64_t unpack(char* out, std::uint64_t count) {
    const auto room = static_cast<uInt>(std::min<std::uint64_t>(count, 1 << 30));
    stream.next_out = reinterpret_cast<Bytef*>(out);
    stream.avail_out = room;
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::uint64_t got = room - stream.avail_out;
    unpacked += got;
    if (result == Z_STREAM_END)
      ended = !next_member();
    else if (result != Z_OK && result != Z_BUF_ERROR)
      fail(concat("damaged gzip data after ", unpacked, " unpacked bytes (",
                  std::string_view(stream.msg == nullptr ? "zlib gives no reason" : stream.msg),
                  ")"));
    return got;
  }

  bool next_member() {
    if (stream.avail_in == 0 && !refill()) return false;
    if (*stream.next_in != 0x1f)
      fail(concat(stream.avail_in + (file.size() - taken), " bytes follow the gzip data"));
    inflateReset(&stream);
    return true;
  }

  std::filesystem::path path;
  InputFile file;
  std::vector<char> piece;  // of the file; next_in, avail_in: what zlib has not consumed
  z_stream stream{};
  std::uint64_t taken = 0, unpacked = 0;
  bool packed = false, ended = false;
};

GzipStream::GzipStream(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}

GzipStream::~GzipStream() = default;

bool GzipStream::is_packed() const {
  return state_->packed;
}

std::uint64_t GzipStream::file_size() const {
  return state_->file.size();
}

std::uint64_t GzipStream::read(char* out, std::uint64_t count) {
  State& state = *state_;
  std::uint64_t done = 0;
  while (done < count && !state.ended) {
    if (state.stream.avail_in == 0 && !state.refill()) {
      if (state.packed)
        state.fail(concat("truncated gzip data: ends after ", state.unpacked, " unpacked bytes"));
      state.ended = true;
      break;
    }
    done += state.packed ? state.unpack(out + done, count - done)
                         : state.copy(out + done, count - done);
  }
  return done;
}

std::string read_gzip(const std::filesystem::path& path, std::uint64_t limit_in_bytes) try {
  GzipStream stream(path);
  const auto fail = [&path](const std::string& what) { throw data_error(path, what); };
  // Packing may enlarge data, by 5 bytes per 16 KiB and a header with a name.
  const std::uint64_t size = stream.file_size(),
                      largest = limit_in_bytes + limit_in_bytes / 1024 + 65536;
  if (size > largest) fail(concat("file has ", size, " bytes, at most ", largest, " are read"));
  if (!stream.is_packed()) fail("is not a gzip file");
  const std::uint64_t room = limit_in_bytes + 1;  // one more, to detect an excess
  std::string content;
  for (std::uint64_t have = 0; have == content.size();) {
    content.resize(std::min(room, std::max(2 * have, 8 * size + 1024)));
    have += stream.read(content.data() + have, content.size() - have);
    if (have > limit_in_bytes) fail(concat("unpacks to more than ", limit_in_bytes, " bytes"));
    if (have < content.size()) {
      content.resize(have);
      break;
    }
  }
  return content;
} catch (const std::bad_alloc&) {
  throw data_error(path, "no memory for what it unpacks to");
}

}  // namespace pipewright
