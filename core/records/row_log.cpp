// SPDX-License-Identifier: Apache-2.0
#include "core/records/row_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/records/checkpoint_files.h"
#include "core/system/file.h"
#include "core/system/machine_limits.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 1 << 16;  // bytes

std::uint32_t crc_of(std::uint32_t before, std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32(before, reinterpret_cast<const Bytef*>(bytes.data()),
                                            static_cast<uInt>(bytes.size())));
}

std::string digits_of(std::uint32_t crc) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", crc);
  return text;
}

[[noreturn]] void fail_at(const fs::path& path, std::string_view what, int code) {
  throw Error(ErrorKind::Data, concat(what, ": ", errno_text(code)), path.string());
}

/// Reads the first `bytes` bytes, or all of a shorter file, in blocks.
void read_blocks(const fs::path& path, std::int64_t bytes,
                 const std::function<void(std::string_view)>& take) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) fail_at(path, "cannot open", errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error(ErrorKind::Data, "is no regular file", path.string());
  }
  std::string block(kBlock, '\0');
  int code = 0;
  while (bytes > 0 && code == 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(bytes, kBlock));
    const ssize_t count = ::read(descriptor, block.data(), wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) code = errno;
    if (count <= 0) break;
    take(std::string_view(block).substr(0, static_cast<std::size_t>(count)));
    bytes -= count;
  }
  ::close(descriptor);
  if (code != 0) fail_at(path, "cannot read", code);
}

}  // namespace

void append_number(std::string& text, double value) {
  if (std::isnan(value)) return;
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 17);
  text.append(digits, end.ptr);
}

void check_row_log(const fs::path& folder, const RowLogPart& part) {
  if (part.name.empty()) return;
  std::int64_t bytes = 0;
  std::uint32_t crc = 0;
  read_blocks(folder / part.name, part.bytes, [&](std::string_view block) {
    bytes += static_cast<std::int64_t>(block.size());
    crc = crc_of(crc, block);
  });
  if (bytes < part.bytes)
    throw Error(ErrorKind::Data,
                concat("has ", bytes, " bytes; the checkpoint was written with ", part.bytes),
                (folder / part.name).string());
  if (digits_of(crc) != part.checksum)
    throw Error(ErrorKind::Data, "is damaged: its checksum is not the one it was written with",
                (folder / part.name).string());
}

RowLog::RowLog(fs::path path, int flags) : path_(std::move(path)) {
  make_folders(path_.parent_path());
  descriptor_ = ::open(path_.c_str(), flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot open");
}

RowLog::RowLog(RowLog&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      crc_(other.crc_) {}

RowLog& RowLog::operator=(RowLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(crc_, other.crc_);
  return *this;
}

RowLog::~RowLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void read_row_log(const fs::path& folder, const RowLogPart& part,
                  const std::function<void(std::string_view line)>& take) {
  std::string rest;
  read_blocks(folder / part.name, part.bytes, [&](std::string_view block) {
    rest += block;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(std::string_view(rest).substr(begin, end - begin));
    rest.erase(0, begin);
    if (rest.size() > kBlock)
      throw Error(ErrorKind::Data, concat("has a line of more than ", kBlock, " bytes"),
                  (folder / part.name).string());
  });
}

RowLog RowLog::begin(const fs::path& folder, std::string_view table, std::int64_t minibatches,
                     std::string_view header) {
  RowLog log(folder / concat(table, "-", checkpoint_folder_name(minibatches), ".csv"),
             O_CREAT | O_TRUNC);
  log.append(header);
  return log;
}

RowLog RowLog::go_on(const fs::path& folder, const RowLogPart& part) {
  RowLog log(folder / part.name, 0);
  if (::ftruncate(log.descriptor_, part.bytes) != 0) log.fail("cannot truncate");
  log.bytes_ = part.bytes;
  log.crc_ = static_cast<std::uint32_t>(std::stoul(part.checksum, nullptr, 16));
  return log;
}

void RowLog::append(std::string_view text) {
  const std::uint32_t crc = crc_of(crc_, text);
  const auto length = static_cast<std::int64_t>(text.size());
  if (::lseek(descriptor_, bytes_, SEEK_SET) < 0) fail("cannot write");
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  bytes_ += length;
  crc_ = crc;
}

void RowLog::sync() const {
  if (::fsync(descriptor_) != 0) fail("cannot sync");
}

RowLogPart RowLog::part() const {
  return {.name = path_.filename().string(), .bytes = bytes_, .checksum = digits_of(crc_)};
}

void RowLog::copy_to(const fs::path& path, Syncs syncs) const {
  // Mapping the file avoids a copy of many rows in memory.
  void* const start =
      ::mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ, MAP_SHARED, descriptor_, 0);
  if (start == MAP_FAILED) fail("cannot map");
  try {
    write_file(path, {static_cast<const char*>(start), static_cast<std::size_t>(bytes_)}, syncs);
  } catch (...) {
    ::munmap(start, static_cast<std::size_t>(bytes_));
    throw;
  }
  ::munmap(start, static_cast<std::size_t>(bytes_));
}

void RowLog::fail(std::string_view what) const {
  fail_at(path_, what, errno);
}

}  // namespace pipewright
