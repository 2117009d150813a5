#include "datasets/archives/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/system/input_file.h"

namespace pipewright {
namespace {

constexpr std::size_t kPiece = 1 << 17;

}  // namespace

struct GzipStream::State {
  explicit State(const std::filesystem::path& name) : path(name), file(name), piece(kPiece) {
    PIPEWRIGHT_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK);  // 16: gzip only
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::Data, what, path.string());
  }

  std::filesystem::path path;
  InputFile file;
  std::vector<char> piece;  // of the file; what zlib has not taken is next_in, avail_in
  z_stream stream{};
  bool packed = false, ended = false;
};

GzipStream::GzipStream(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {
  refill();
  const std::string_view first(reinterpret_cast<const char*>(state_->stream.next_in),
                               state_->stream.avail_in);
  state_->packed = first.starts_with("\x1f\x8b");
}

GzipStream::~GzipStream() = default;

bool GzipStream::refill() {
  State& state = *state_;
  const std::uint64_t got = state.file.read(state.piece.data(), state.piece.size());
  state.stream.next_in = reinterpret_cast<Bytef*>(state.piece.data());
  state.stream.avail_in = static_cast<uInt>(got);
  return state.stream.avail_in > 0;
}

bool GzipStream::next_member() {
  State& state = *state_;
  if (state.stream.avail_in == 0 && !refill()) return false;
  if (*state.stream.next_in != 0x1f) state.fail("other bytes follow the gzip data");
  inflateReset(&state.stream);
  return true;
}

std::uint64_t GzipStream::read(char* out, std::uint64_t count) {
  State& state = *state_;
  z_stream& stream = state.stream;
  std::uint64_t done = 0;
  while (done < count && !state.ended) {
    if (stream.avail_in == 0 && !refill()) {
      if (state.packed) state.fail("truncated gzip data");
      state.ended = true;
      break;
    }
    if (!state.packed) {
      const std::uint64_t part = std::min<std::uint64_t>(count - done, stream.avail_in);
      std::memcpy(out + done, stream.next_in, part);
      stream.next_in += part;
      stream.avail_in -= static_cast<uInt>(part);
      done += part;
      continue;
    }
    const auto room = static_cast<uInt>(std::min<std::uint64_t>(count - done, 1 << 30));
    stream.next_out = reinterpret_cast<Bytef*>(out + done);
    stream.avail_out = room;
    const int result = inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (result == Z_STREAM_END)
      state.ended = !next_member();
    else if (result != Z_OK && result != Z_BUF_ERROR)
      state.fail(concat(
          "damaged gzip data (",
          std::string_view(stream.msg == nullptr ? "zlib gives no reason" : stream.msg), ")"));
  }
  return done;
}

}  // namespace pipewright
