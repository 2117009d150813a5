/// Plain files opened for reading. Every input of the program is opened here, so that none of them
/// can hang, never end, or act when it is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/system/descriptor.h"

namespace pipewright {

/// An open file. FIFOs, sockets, devices and folders are refused before a byte is read.
class InputFile {
 public:
  /// Throws Error{Data} naming the file when it is missing, unreadable, or no plain file.
  explicit InputFile(std::filesystem::path path);

  /// In bytes, as it was when the file was opened.
  std::uint64_t size() const { return size_; }
  /// For system calls on the open file; it stays ours.
  int descriptor() const { return file_.number(); }
  /// How many of `count` bytes there were; fewer only at the end. Throws Error{Data}.
  std::uint64_t read(char* out, std::uint64_t count);
  /// The same from that byte of the file on; read() then goes on behind it.
  std::uint64_t read_at(std::uint64_t offset, char* out, std::uint64_t count);

 private:
  [[noreturn]] void fail(std::string_view what, int code) const;

  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace pipewright
