// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/system/input_file.h"
#include "datasets/archives/gzip.h"

namespace pipewright {
namespace {

constexpr std::size_t kPieceBytes = 1 << 17;
constexpr std::uint64_t kBlock = 512, kTypeInBlock = 156;  // of tar headers
constexpr std::uint64_t kMostAfterTheEnd = 1 << 24;        // tar pads its last record with zeros

/// While it lives, libarchive converts names as UTF-8 in any locale of the process; in "C" it would
/// replace all letters beyond ASCII.
class Utf8Locale {
 public:
  Utf8Locale() : before_(::uselocale(utf8())) {}
  ~Utf8Locale() { ::uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  /// Null if the system has no such locale; uselocale() changes nothing then.
  static locale_t utf8() {
    static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return locale;
  }

  locale_t before_;
};

bool begins_as_zip(InputFile& file) {
  std::array<char, 4> first{};
  file.read_at(0, first.data(), first.size());
  const std::string_view bytes(first.data(), first.size());
  return bytes == "PK\x03\x04" || bytes == "PK\x05\x06";
}

bool leads_out(const std::string& name) {
  if (name.empty() || name.front() == '/') return true;
  const std::vector<std::string> parts = split(name, '/');
  return std::ranges::find(parts, "..") != parts.end();
}

/// The member's name in UTF-8; unchanged bytes if it cannot be converted.
std::string name_of(archive_entry* entry) {
  const char* name = archive_entry_pathname_utf8(entry);
  if (name == nullptr) name = archive_entry_pathname(entry);
  std::string text = name == nullptr ? "" : name;
  while (text.starts_with("./") && text.size() > 2) text.erase(0, 2);
  return text;
}

}  // namespace

/// libarchive's reader and the source of its bytes: a tar is unpacked by our GzipStream, a zip is
/// read as it lies in the file.
struct ArchiveReader::State {
  explicit State(const std::filesystem::path& archive);
  ~State() {
    archive_entry_free(entry);
    archive_read_free(reader);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[noreturn]] void fail(const std::string& what) const { throw data_error(path, what); }
  bool is_zip() const { return file.has_value(); }
  std::uint64_t position() const {
    return static_cast<std::uint64_t>(archive_filter_bytes(reader, 0));
  }

  la_ssize_t give(const void** out);
  la_int64_t seek(la_int64_t offset, int whence);
  void open();
  void throw_if_failed(la_ssize_t result, bool within_member);
  bool next_header();
  void skip_rest();
  bool is_plain() const;
  void accept();
  void read_to_end();

  std::filesystem::path path;
  std::optional<GzipStream> stream;  // for a tar
  std::optional<InputFile> file;     // for a zip
  archive* reader = nullptr;
  archive_entry* entry = nullptr;  // libarchive's description of the member
  std::vector<char> piece = std::vector<char>(kPieceBytes);  // last given to libarchive
  std::uint64_t begin = 0, end = 0;  // offsets of the piece in the file or stream
  bool exhausted = false;            // libarchive has read to the end
  std::exception_ptr pending;        // thrown in a callback
  std::string name;
  std::uint64_t size = 0;
  bool at_member = false;
};

namespace {

/// Runs a callback of libarchive. An exception must not cross libarchive, so it is stored and
/// rethrown once libarchive has returned.
template <class State, class Call>
la_int64_t guarded(void* data, const Call& call) {
  State& state = *static_cast<State*>(data);
  try {
    return call(state);
  } catch (...) {
    state.pending = std::current_exception();
    return ARCHIVE_FATAL;
  }
}

}  // namespace

ArchiveReader::State::State(const std::filesystem::path& archive) : path(archive) {
  InputFile candidate(path);
  if (begins_as_zip(candidate))
    file = std::move(candidate);
  else
    stream.emplace(path);
  reader = archive_read_new();
  entry = archive_entry_new2(reader);
}

la_ssize_t ArchiveReader::State::give(const void** out) {
  begin = end;
  const std::uint64_t got = is_zip() ? file->read_at(begin, piece.data(), piece.size())
                                     : stream->read(piece.data(), piece.size());
  end += got;
  exhausted = exhausted || got == 0;
  *out = piece.data();
  return static_cast<la_ssize_t>(got);
}

la_int64_t ArchiveReader::State::seek(la_int64_t offset, int whence) {
  const auto size_of_file = static_cast<la_int64_t>(file->size());
  const la_int64_t from = whence == SEEK_SET   ? 0
                          : whence == SEEK_CUR ? static_cast<la_int64_t>(end)
                                               : size_of_file;
  if (offset < -from || offset > size_of_file - from) return ARCHIVE_FATAL;
  end = static_cast<std::uint64_t>(from + offset);
  return from + offset;
}

void ArchiveReader::State::open() {
  if (reader == nullptr || entry == nullptr) throw std::bad_alloc();
  const auto set = [this](int result) { throw_if_failed(result, false); };
  set(is_zip() ? archive_read_support_format_zip_seekable(reader)
               : archive_read_support_format_tar(reader));
  set(archive_read_set_read_callback(reader, [](archive*, void* data, const void** out) {
    return static_cast<la_ssize_t>(
        guarded<State>(data, [&](State& state) { return state.give(out); }));
  }));
  if (is_zip())
    set(archive_read_set_seek_callback(
        reader, [](archive*, void* data, la_int64_t offset, int whence) {
          return guarded<State>(data, [&](State& state) { return state.seek(offset, whence); });
        }));
  set(archive_read_set_callback_data(reader, this));
  const Utf8Locale locale;
  const int result = archive_read_open1(reader);
  if (result != ARCHIVE_OK && is_zip() && !pending)
    fail("it is not a zip archive, or is truncated: it has no directory");
  throw_if_failed(result == ARCHIVE_OK ? result : ARCHIVE_RETRY, false);
}

/// Throws for errors and also for warnings of libarchive, and rethrows the exception of a callback.
void ArchiveReader::State::throw_if_failed(la_ssize_t result, bool within_member) {
  if (pending) std::rethrow_exception(std::exchange(pending, nullptr));
  if (result >= ARCHIVE_OK) return;
  if (archive_errno(reader) == ENOMEM) throw std::bad_alloc();
  const char* said = archive_error_string(reader);
  const std::string reason = said == nullptr ? "" : concat(" (", said, ")");
  if (is_zip() && within_member)
    fail(concat("damaged zip archive: member '", name, "' does not unpack to what it was", reason));
  if (is_zip())
    fail(concat("damaged or truncated zip archive: wrong directory, or wrong header after '", name,
                "'", reason));
  if (exhausted && within_member)
    fail(concat("the archive ends within member '", name, "': it is truncated"));
  if (exhausted) fail("the archive ends too early: it is truncated");
  if (result == ARCHIVE_RETRY)
    fail(concat(
        "it is not a tar archive, or is damaged: wrong checksum or size in the header after '",
        name, "'"));
  fail(concat("damaged tar archive: the header after '", name, "' is wrong", reason));
}

void ArchiveReader::State::skip_rest() {
  if (at_member) throw_if_failed(archive_read_data_skip(reader), true);
  at_member = false;
}

/// Reads the next member's header. Returns false at the end of the archive.
bool ArchiveReader::State::next_header() {
  const Utf8Locale locale;
  skip_rest();
  const std::uint64_t before = position();
  const int result = archive_read_next_header2(reader, entry);
  if (result == ARCHIVE_EOF) {
    if (is_zip()) return false;
    if (position() == before) fail("the archive ends too early: it is truncated");
    read_to_end();
    return false;
  }
  const bool known = result == ARCHIVE_WARN && is_zip();
  if (known) name = name_of(entry);
  throw_if_failed(result, known);
  at_member = true;
  return true;
}

/// Whether the member is a file or a folder. libarchive also accepts sparse files and reports
/// unknown types as files, so the type of a tar member is read from the block before its data.
bool ArchiveReader::State::is_plain() const {
  const auto type = archive_entry_filetype(entry);
  if (is_zip()) return type == AE_IFREG || type == AE_IFDIR;
  const std::uint64_t header = position() - kBlock;
  if (archive_entry_sparse_count(entry) > 0 || header < begin || header + kBlock > end)
    return false;
  constexpr std::array kPlain{'0', '\0', '7', '5'};  // '5': a folder
  return std::ranges::find(kPlain, piece[header - begin + kTypeInBlock]) != kPlain.end();
}

void ArchiveReader::State::accept() {
  const Utf8Locale locale;
  name = name_of(entry);
  size = static_cast<std::uint64_t>(archive_entry_size(entry));
  if (leads_out(name)) fail(concat("member '", name, "' leads out of the archive"));
  if (archive_entry_is_encrypted(entry) != 0 || archive_read_has_encrypted_entries(reader) > 0)
    fail(concat("member '", name, "' or another is encrypted"));
  if (!is_plain()) fail(concat("member '", name, "' is a link or another special file"));
}

/// Reads on to the end of the file, where gzip's checksum is verified.
void ArchiveReader::State::read_to_end() {
  for (std::uint64_t more = 0, got = 1; got > 0; more += got) {
    if (more > kMostAfterTheEnd) fail("other data follow the end of the archive");
    got = stream->read(piece.data(), piece.size());
  }
}

ArchiveReader::ArchiveReader(const std::filesystem::path& archive)
    : state_(std::make_unique<State>(archive)) {
  state_->open();
}

ArchiveReader::~ArchiveReader() = default;

const std::string& ArchiveReader::name() const {
  return state_->name;
}

std::uint64_t ArchiveReader::size() const {
  return state_->size;
}

bool ArchiveReader::next() {
  while (state_->next_header()) {
    state_->accept();
    if (archive_entry_filetype(state_->entry) != AE_IFDIR) return true;
  }
  return false;
}

std::string ArchiveReader::content(std::uint64_t limit_in_bytes) {
  State& state = *state_;
  const std::string member = concat("member '", state.name, "'");
  if (state.size > limit_in_bytes)
    state.fail(
        concat(member, " has ", state.size, " bytes, at most ", limit_in_bytes, " are read"));
  const std::string format = archive_format_name(state.reader);  // "ZIP 2.0 (deflation)"
  if (state.is_zip() && !format.ends_with("(deflation)") && !format.ends_with("(uncompressed)"))
    state.fail(concat(member, " is packed otherwise than stored or deflated: ", format));
  const auto read = [&state](char* out, std::uint64_t count) {
    const la_ssize_t got = archive_read_data(state.reader, out, count);
    state.throw_if_failed(got, true);
    return static_cast<std::uint64_t>(got);
  };
  std::string bytes(state.size, '\0');
  char beyond = 0;  // reading beyond the end verifies the checksum
  if (read(bytes.data(), bytes.size()) < bytes.size() || read(&beyond, 1) > 0)
    state.fail(concat("damaged archive: ", member, " does not unpack to what it was"));
  return bytes;
}

}  // namespace pipewright
