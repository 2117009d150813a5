// SPDX-License-Identifier: Apache-2.0
#include "core/training/step_log.h"

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

/// Appends a number with 17 significant digits, from which every double reads back exactly; NaN
/// adds nothing.
void append_number(std::string& text, double value) {
  if (std::isnan(value)) return;
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 17);
  text.append(digits, end.ptr);
}

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

std::string name_of(std::int64_t minibatches) {
  return concat("steps-", checkpoint_folder_name(minibatches), ".csv");
}

/// The row without its auxiliary losses: epoch, mini-batch and loss, then so many empty fields.
std::string reduced_row(std::string_view row, std::size_t auxiliary) {
  std::size_t end = 0;
  for (int field = 0; field < 3 && end < row.size(); ++field)
    end = std::min(row.find(',', end + (field > 0 ? 1 : 0)), row.size());
  return std::string(row.substr(0, end)) + std::string(auxiliary, ',') + "\n";
}

}  // namespace

std::string steps_header(const std::vector<int>& auxiliary) {
  std::string text = "epoch,minibatch,loss";
  for (const int stage : auxiliary) text += concat(",loss_", stage);
  return text + "\n";
}

void check_step_log(const fs::path& folder, const StepLogPart& part) {
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

StepLog::StepLog(fs::path path, int flags) : path_(std::move(path)) {
  make_folders(path_.parent_path());
  descriptor_ = ::open(path_.c_str(), flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot open");
}

StepLog::StepLog(StepLog&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      crc_(other.crc_) {}

StepLog& StepLog::operator=(StepLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(crc_, other.crc_);
  return *this;
}

StepLog::~StepLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

StepLog StepLog::begin(const fs::path& folder, std::int64_t minibatches,
                       const std::vector<int>& auxiliary) {
  StepLog log(folder / name_of(minibatches), O_CREAT | O_TRUNC);
  log.write(steps_header(auxiliary));
  return log;
}

StepLog StepLog::go_on(const fs::path& folder, const StepLogPart& part, std::int64_t minibatches,
                       const std::vector<int>& auxiliary) {
  const fs::path old = folder / part.name;
  const std::string header = steps_header(auxiliary);
  std::string begun;
  read_blocks(old, std::min<std::int64_t>(part.bytes, std::ssize(header)),
              [&](std::string_view block) { begun += block; });
  if (begun == header) {
    StepLog log(old, 0);
    if (::ftruncate(log.descriptor_, part.bytes) != 0) log.fail("cannot truncate");
    log.bytes_ = part.bytes;
    log.crc_ = static_cast<std::uint32_t>(std::stoul(part.checksum, nullptr, 16));
    return log;
  }
  std::int64_t number = minibatches;
  if (name_of(number) == part.name) ++number;
  StepLog log = begin(folder, number, auxiliary);
  std::string rest;
  bool first = true;
  read_blocks(old, part.bytes, [&](std::string_view block) {
    rest += block;
    std::string rows;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (!std::exchange(first, false))
        rows += reduced_row(std::string_view(rest).substr(begin, end - begin), auxiliary.size());
    rest.erase(0, begin);
    log.write(rows);
  });
  return log;
}

void StepLog::append(const std::vector<std::vector<double>>& losses, std::int64_t first,
                     std::int64_t minibatches_per_epoch) {
  std::string rows;
  for (const std::vector<double>& of : losses) {
    rows += concat(first / minibatches_per_epoch, ",", first % minibatches_per_epoch);
    for (const double loss : of) {
      rows += ',';
      append_number(rows, loss);
    }
    rows += '\n';
    ++first;
  }
  write(rows);
}

void StepLog::write(std::string_view text) {
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

void StepLog::sync() const {
  if (::fsync(descriptor_) != 0) fail("cannot sync");
}

StepLogPart StepLog::part() const {
  return {.name = path_.filename().string(), .bytes = bytes_, .checksum = digits_of(crc_)};
}

void StepLog::copy_to(const fs::path& path, Syncs syncs) const {
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

void StepLog::fail(std::string_view what) const {
  fail_at(path_, what, errno);
}

}  // namespace pipewright
