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

#include "core/base/error.h"
#include "core/base/printed.h"
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
  return printed("%08x", crc);
}

/// Reads the first `bytes` bytes, or all of a shorter file, in blocks.
void read_blocks(const fs::path& path, std::int64_t bytes,
                 const std::function<void(std::string_view)>& take) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (!file.is_open()) refuse_file(path, "cannot open", errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error(ErrorKind::Data, "is no regular file", path.string());
  std::string block(kBlock, '\0');
  while (bytes > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(bytes, kBlock));
    const ssize_t count = ::read(file.number(), block.data(), wanted);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_file(path, "cannot read", errno);
    if (count == 0) return;
    take(std::string_view(block).substr(0, static_cast<std::size_t>(count)));
    bytes -= count;
  }
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

RowLog::RowLog(const fs::path& path, int flags) : path_(path) {
  make_folders(path_.parent_path());
  file_ = Descriptor(path_, flags | O_RDWR | O_NOFOLLOW);
  if (!file_.is_open()) fail("cannot open");
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
  if (::ftruncate(log.file_.number(), part.bytes) != 0) log.fail("cannot truncate");
  log.bytes_ = part.bytes;
  log.crc_ = static_cast<std::uint32_t>(std::stoul(part.checksum, nullptr, 16));
  return log;
}

void RowLog::append(std::string_view text) {
  if (::lseek(file_.number(), bytes_, SEEK_SET) < 0) fail("cannot write");
  write_all(file_.number(), text, path_);
  bytes_ += static_cast<std::int64_t>(text.size());
  crc_ = crc_of(crc_, text);
}

void RowLog::sync() const {
  if (::fsync(file_.number()) != 0) fail("cannot sync");
}

RowLogPart RowLog::part() const {
  return {.name = path_.filename().string(), .bytes = bytes_, .checksum = digits_of(crc_)};
}

void RowLog::copy_to(const fs::path& path, Syncs syncs) const {
  // Mapping the file avoids a copy of many rows in memory.
  void* const start =
      ::mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ, MAP_SHARED, file_.number(), 0);
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
  refuse_file(path_, what, errno);
}

}  // namespace pipewright
