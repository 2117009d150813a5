// SPDX-License-Identifier: Apache-2.0
/// Regular files opened for reading. Every input of the program is opened here, so that reading can
/// neither block, nor go on forever, nor have side effects, as it could with a FIFO or a device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/system/descriptor.h"

namespace pipewright {

/// An open regular file. FIFOs, sockets, devices and folders are refused before a byte is read.
class InputFile {
 public:
  /// Throws Error{Data} naming the file when it is missing, unreadable, or not a regular file.
  explicit InputFile(std::filesystem::path path);

  /// Size in bytes when the file was opened.
  std::uint64_t size() const { return size_; }
  /// The open descriptor, for system calls; this object still owns it.
  int descriptor() const { return file_.number(); }
  /// Reads up to `count` bytes from the current position and returns how many; fewer only at the
  /// end of the file. Throws Error{Data}.
  std::uint64_t read(char* out, std::uint64_t count);
  /// As read(), but from byte `offset` of the file; the next read() continues behind it.
  std::uint64_t read_at(std::uint64_t offset, char* out, std::uint64_t count);
  /// The next read() continues that many bytes further on.
  void skip(std::uint64_t count);

 private:
  [[noreturn]] void fail(std::string_view what, int code) const;

  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace pipewright
